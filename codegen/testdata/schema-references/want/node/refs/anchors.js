export { anchors } from "./index.js";
