export { notASchema } from "./index.js";
