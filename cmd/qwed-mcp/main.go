// Command qwed-mcp serves the face of the risk gateway on stdio: `airlock mcp --face
// gateway` under the name that hosts know. See `qwed-mcp --help`.
package main

import (
	"os"

	"github.com/airlock-mcp/airlock/app/cli"
)

func main() { os.Exit(cli.Process(cli.Named("qwed-mcp"))) }
