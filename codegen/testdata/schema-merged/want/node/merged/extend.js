export { extend } from "./index.js";
