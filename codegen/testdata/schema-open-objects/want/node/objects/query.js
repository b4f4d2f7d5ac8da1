export { query } from "./index.js";
