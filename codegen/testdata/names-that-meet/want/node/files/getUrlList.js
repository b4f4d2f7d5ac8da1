export { getUrlList } from "./index.js";
