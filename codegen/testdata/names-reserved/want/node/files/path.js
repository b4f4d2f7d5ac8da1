export { path } from "./index.js";
