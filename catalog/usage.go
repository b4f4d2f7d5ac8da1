package catalog

// ToolRef names a tool.
type ToolRef struct{ ServerID, ToolName string }

// Usage is how code calls a tool: a line that imports its wrapper, and a line
// with the types in short.
type Usage struct{ Import, Signature string }

// Usages says how code in a language calls the tools of servers, which are as
// Shown returns them. A tool that cannot be called is not in it.
type Usages func(servers []Server, language string) map[ToolRef]Usage
