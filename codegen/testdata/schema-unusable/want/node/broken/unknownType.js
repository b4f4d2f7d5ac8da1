export { unknownType } from "./index.js";
