export { serverId } from "./index.js";
