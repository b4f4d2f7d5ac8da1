export { rows } from "./index.js";
