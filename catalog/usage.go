package catalog

// ToolRef names a tool.
type ToolRef struct{ ServerID, ToolName string }

// Usage is how code calls a tool: a line that imports its wrapper, and a line
// with the types in short.
type Usage struct{ Import, Signature string }

// Usages returns how code in a language calls the tools of servers, which come from
// Shown. The result omits tools that cannot be called.
type Usages func(servers []Server, language string) map[ToolRef]Usage
