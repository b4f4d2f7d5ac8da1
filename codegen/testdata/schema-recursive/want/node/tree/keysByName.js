export { keysByName } from "./index.js";
