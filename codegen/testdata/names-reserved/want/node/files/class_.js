export { class_ } from "./index.js";
