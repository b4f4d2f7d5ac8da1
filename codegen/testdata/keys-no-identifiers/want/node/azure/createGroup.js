export { createGroup } from "./index.js";
