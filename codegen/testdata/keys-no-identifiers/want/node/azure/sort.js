export { sort } from "./index.js";
