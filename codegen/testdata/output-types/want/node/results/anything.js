export { anything } from "./index.js";
