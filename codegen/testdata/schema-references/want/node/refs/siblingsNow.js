export { siblingsNow } from "./index.js";
