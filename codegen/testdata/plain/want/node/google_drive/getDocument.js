export { getDocument } from "./index.js";
