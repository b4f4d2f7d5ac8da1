export { count } from "./index.js";
