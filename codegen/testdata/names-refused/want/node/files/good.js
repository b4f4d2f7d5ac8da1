export { good } from "./index.js";
