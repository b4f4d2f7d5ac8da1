/** A tool that a search found. */
export interface FoundTool {
  serverId: string;
  toolName: string;
  title?: string;
  description?: string;
}

/** Searches the tools of all servers, or of one; best first. */
export declare function searchTools(search?: {
  query?: string;
  serverId?: string;
  detail?: "name" | "name+description";
  limit?: number;
}): Promise<FoundTool[] & { readonly missing: { serverId: string; problem: string }[] }>;

/** Returns the whole definition of one tool, as its server sent it. */
export declare function getToolDefinition(
  tool: { serverId: string; name: string } | { serverId: string; toolName: string },
): Promise<Record<string, unknown>>;

export declare const catalog: {
  searchTools: typeof searchTools;
  getToolDefinition: typeof getToolDefinition;
};
