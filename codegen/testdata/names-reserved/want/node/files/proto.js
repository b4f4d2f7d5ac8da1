export { proto } from "./index.js";
