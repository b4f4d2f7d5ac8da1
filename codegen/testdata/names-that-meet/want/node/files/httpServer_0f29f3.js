export { httpServer_0f29f3 } from "./index.js";
