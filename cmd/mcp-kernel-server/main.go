// Command mcp-kernel-server serves the tools of agent-os-kernel to agent hosts. See
// `mcp-kernel-server --help`.
package main

import (
	"os"

	"github.com/airlock-mcp/airlock/app/cli"
)

func main() { os.Exit(cli.Process(cli.Named("mcp-kernel-server"))) }
