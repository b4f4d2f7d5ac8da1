export { toolError } from "./index.js";
