export { aB } from "./index.js";
