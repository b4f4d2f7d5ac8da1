export { server } from "./index.js";
