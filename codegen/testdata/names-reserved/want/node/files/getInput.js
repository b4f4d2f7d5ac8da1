export { getInput } from "./index.js";
