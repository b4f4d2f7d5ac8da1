export { delete_ } from "./index.js";
