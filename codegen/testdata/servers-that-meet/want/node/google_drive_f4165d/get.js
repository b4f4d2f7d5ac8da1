export { get } from "./index.js";
