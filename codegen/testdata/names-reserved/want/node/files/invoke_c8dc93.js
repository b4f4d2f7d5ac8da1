export { invoke_c8dc93 } from "./index.js";
