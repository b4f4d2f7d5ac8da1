export { attach } from "./index.js";
