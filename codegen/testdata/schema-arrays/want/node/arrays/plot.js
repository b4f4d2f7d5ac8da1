export { plot } from "./index.js";
