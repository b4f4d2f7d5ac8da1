export { aB_d44362 } from "./index.js";
