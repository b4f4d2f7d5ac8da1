// Package hosts has the verbs that connect agent hosts, and the programs that hosts start: airlock mcp,
// qwed-mcp and mcp-kernel-server.
package hosts
