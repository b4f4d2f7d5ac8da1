export { deep } from "./index.js";
