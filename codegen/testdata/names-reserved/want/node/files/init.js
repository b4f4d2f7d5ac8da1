export { init } from "./index.js";
