export { aB_648fa9 } from "./index.js";
