export { store } from "./index.js";
