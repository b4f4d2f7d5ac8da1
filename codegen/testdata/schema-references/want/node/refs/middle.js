export { middle } from "./index.js";
