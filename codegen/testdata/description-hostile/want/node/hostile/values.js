export { values } from "./index.js";
