export { docstring } from "./index.js";
