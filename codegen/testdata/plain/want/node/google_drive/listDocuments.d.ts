import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "list_documents" of server "google-drive", wrapped by Airlock. Definition: sha256:6da2dea70bc1bb5a297e594b19ae881f4343db421eca93619a1c8361174c269b. */

export interface ListDocumentsInput {
}

/** List all documents. */
export declare function listDocuments(args?: ListDocumentsInput): Promise<ToolResult<unknown>>;
