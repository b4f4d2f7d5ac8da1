package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/airlock-mcp/airlock/app/cli/hosts"
	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/internal/procfs"
)

// Program is the main function of one program. It returns the exit code. Cancelling ctx ends the
// program.
type Program func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Process runs a program with the arguments, streams and signals of this process, and returns the
// exit code. Package fastpath has read the arguments before. It may have ended the process, or
// started a run that Process continues.
func Process(program Program) int {
	delayFirstCollection()
	calmMonitor()
	if err := errors.Join(procfs.CloseOnExec(), procfs.EraseEnvironment()); err != nil {
		fmt.Fprintf(os.Stderr, "airlock: programs that this one starts can read its environment or use its files: %v\n",
			err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// SIGPIPE must not end the program before it has cleaned up: the failed write returns an
	// error. The signal is caught, not ignored, because servers would inherit that it is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if fastpath.Interrupted() { // a signal arrived before NotifyContext was called
		cancel()
	}
	return program(ctx, os.Args[1:], fastpath.Stdin(), os.Stdout, os.Stderr)
}

// Named returns the program for the name that the process was started with. A link to airlock
// under the name of another program is that program.
func Named(name string) Program {
	switch filepath.Base(name) {
	case "qwed-mcp":
		return hosts.GatewayMain
	case "mcp-kernel-server":
		return hosts.KernelMain
	}
	return Main
}
