// Command airlock lets an agent work by writing code. See `airlock --help`.
package main

import (
	"os"

	"github.com/airlock-mcp/airlock/app/cli"
	_ "github.com/airlock-mcp/airlock/app/fastpath/version" // prints it before main begins
)

func main() { os.Exit(cli.Process(cli.Named(os.Args[0]))) }
