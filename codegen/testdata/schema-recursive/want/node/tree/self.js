export { self } from "./index.js";
