export { grow } from "./index.js";
