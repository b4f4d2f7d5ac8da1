export { odd } from "./index.js";
