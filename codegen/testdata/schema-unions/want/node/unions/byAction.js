export { byAction } from "./index.js";
