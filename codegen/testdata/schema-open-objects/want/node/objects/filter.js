export { filter } from "./index.js";
