export { then_ } from "./index.js";
