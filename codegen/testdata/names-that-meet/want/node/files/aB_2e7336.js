export { aB_2e7336 } from "./index.js";
