import type { ToolResult } from "./mcp_client.js";

/** A file that was attached. */
export interface Attachment {
  readonly name: string;
  readonly uri: string;
  readonly mime_type: string;
  readonly kind: "image" | "audio" | "file";
  readonly bytes: number;
  /** Why it is not what it was announced as. */
  readonly note?: string;
}

/** A value that can be attached: bytes, a path, a tool's result or content block, text, or JSON. */
export type Attachable = Uint8Array | ArrayBuffer | DataView | Blob | URL | string | ToolResult | object;

/** Hands a file to the caller: an image is shown to the model, any other file is linked to. */
export declare function attach(data: Attachable, mime?: string, name?: string): Promise<Attachment>;
