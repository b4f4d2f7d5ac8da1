// Command airlock lets an agent work by writing code. See `airlock --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/airlock-mcp/airlock/app/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A reader that has gone must not end the program before it has cleaned up:
	// the write that fails says so. Ignoring the signal would pass on to servers.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
