export { arguments_ } from "./index.js";
