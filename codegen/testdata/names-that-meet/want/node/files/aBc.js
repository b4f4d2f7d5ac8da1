export { aBc } from "./index.js";
