// Command airlock lets an agent work by writing code. See `airlock --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/airlock-mcp/airlock/internal/app/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
