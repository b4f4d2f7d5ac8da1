export { ToolError } from "../../client/mcp_client.js";
export const problem = "Server \"crm\" is not available: connect to \"https://crm.example.com\": refused \"\"\"; import os */ \u202e";

export default new Proxy({}, {
  get(target, name) {
    // Promises and inspection look for these on any object.
    if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
    throw new Error(problem);
  },
});
