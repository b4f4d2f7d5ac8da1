export { untyped } from "./index.js";
