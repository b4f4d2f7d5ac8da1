export { httpServer_7e64db } from "./index.js";
