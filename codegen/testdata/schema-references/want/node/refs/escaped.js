export { escaped } from "./index.js";
