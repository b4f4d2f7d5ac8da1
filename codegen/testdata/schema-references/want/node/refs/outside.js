export { outside } from "./index.js";
