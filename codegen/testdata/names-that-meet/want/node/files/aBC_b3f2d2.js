export { aBC_b3f2d2 } from "./index.js";
