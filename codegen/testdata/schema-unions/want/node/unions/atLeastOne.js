export { atLeastOne } from "./index.js";
