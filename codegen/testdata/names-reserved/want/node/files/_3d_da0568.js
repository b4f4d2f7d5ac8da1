export { _3d_da0568 } from "./index.js";
