export { modules } from "./index.js";
