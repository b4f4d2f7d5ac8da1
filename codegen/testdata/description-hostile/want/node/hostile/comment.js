export { comment } from "./index.js";
