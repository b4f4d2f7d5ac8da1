export { undefined_ } from "./index.js";
