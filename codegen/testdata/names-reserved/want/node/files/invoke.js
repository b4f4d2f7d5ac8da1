export { invoke } from "./index.js";
