export { print } from "./index.js";
