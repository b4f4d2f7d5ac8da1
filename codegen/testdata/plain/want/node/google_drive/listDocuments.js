export { listDocuments } from "./index.js";
