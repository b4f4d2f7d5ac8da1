export { typeChecking } from "./index.js";
