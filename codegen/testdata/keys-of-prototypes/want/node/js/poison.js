export { poison } from "./index.js";
