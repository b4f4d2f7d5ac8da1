export { label } from "./index.js";
