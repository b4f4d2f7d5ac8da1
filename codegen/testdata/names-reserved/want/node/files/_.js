export { _ } from "./index.js";
