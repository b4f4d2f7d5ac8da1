export { index } from "./index.js";
