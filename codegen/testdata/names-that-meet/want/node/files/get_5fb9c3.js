export { get_5fb9c3 } from "./index.js";
