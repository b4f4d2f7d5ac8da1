export { circle } from "./index.js";
