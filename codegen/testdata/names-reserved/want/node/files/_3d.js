export { _3d } from "./index.js";
