export { escapes } from "./index.js";
