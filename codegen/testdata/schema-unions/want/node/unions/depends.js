export { depends } from "./index.js";
