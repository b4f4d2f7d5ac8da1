export { siblings } from "./index.js";
