export { choose } from "./index.js";
