export { draw } from "./index.js";
