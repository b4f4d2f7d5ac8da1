export { number } from "./index.js";
