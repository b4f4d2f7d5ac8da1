export { move } from "./index.js";
