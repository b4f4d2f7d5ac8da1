export { comments } from "./index.js";
