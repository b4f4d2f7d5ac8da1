export { __3973e0 } from "./index.js";
