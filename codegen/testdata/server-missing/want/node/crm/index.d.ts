export { ToolError } from "../../client/mcp_client.js";
export declare const problem: string;

declare const missing: { readonly [name: string]: never };
export default missing;
