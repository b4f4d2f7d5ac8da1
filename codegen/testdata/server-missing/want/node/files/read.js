export { read } from "./index.js";
