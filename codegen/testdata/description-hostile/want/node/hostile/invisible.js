export { invisible } from "./index.js";
