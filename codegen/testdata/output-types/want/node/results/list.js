export { list } from "./index.js";
