export { class__088911 } from "./index.js";
