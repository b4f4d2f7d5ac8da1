export {};

/** 2 tools of server "google-drive". */

/** What the functions throw: a tool call that failed. */
export { ToolError } from "../../client/mcp_client.js";

/** Get one document. */
export { getDocument, type GetDocumentInput, type GetDocumentOutput } from "./getDocument.js";

/** List all documents. */
export { listDocuments, listDocuments as list_documents, type ListDocumentsInput } from "./listDocuments.js";
