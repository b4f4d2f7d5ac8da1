import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "get.document" of server "google-drive", wrapped by Airlock. Definition: sha256:e6f13ec90e8e9bafae4953033803f6426533059692cd5f97e162d99bc0a76b91. */

export interface GetDocumentInput {
  /** The document's ID. */
  documentId: string;
  /** Which fields to return. Default: []. */
  fields?: string[];
  /** Default: "md". */
  format?: "md" | "html" | null;
  /** 1 to 100. */
  page?: number;
  /** Deprecated. Format: date-time. */
  since?: string | null;
  /** Who owns it. */
  owner?: GetDocumentInputOwner;
}

export interface GetDocumentInputOwner {
  /** Pattern: ^.+@.+$. At most 254 characters. */
  mail: string;
  isTeam?: boolean;
}

export interface GetDocumentOutput {
  title: string;
  bytes?: number;
}

/**
 * Get document.
 *
 * Get one document. Its text comes as Markdown.
 *
 * Large documents take a while.
 *
 * The server says: only reads.
 */
export declare function getDocument(args: GetDocumentInput): Promise<ToolResult<GetDocumentOutput>>;
