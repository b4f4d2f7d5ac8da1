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

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/app/release/build"
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
	if err := errors.Join(procfs.CloseOnExec(), procfs.EraseEnvironment()); err != nil {
		fmt.Fprintf(os.Stderr, "airlock: programs that this one starts can read its environment or use its files: %v\n", err)
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
		return GatewayMain
	case "mcp-kernel-server":
		return KernelMain
	}
	return Main
}

// newParser returns the parser of a command line. *exited is the exit code after the parser has
// printed --help or --version, and -1 before.
func newParser(into any, name, description string, stdout, stderr io.Writer) (parser *kong.Kong, exited *int) {
	exited = new(int)
	*exited = -1
	parser, err := kong.New(into,
		kong.Name(name),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { *exited = code }),
		kong.Vars{"version": build.Line()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // a mistake in the struct tags
	}
	return parser, exited
}

// verbless is a command line that does one thing.
type verbless interface {
	run(ctx context.Context, s *streams) error
}

// runVerbless runs a command line without verbs.
func runVerbless(ctx context.Context, v verbless, name, description string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = cleaned(stderr)
	parser, exited := newParser(v, name, description, stdout, stderr)
	_, err := parser.Parse(args)
	if *exited >= 0 { // --help or --version has printed its output
		return *exited
	}
	ctx, hangup, stop := onHangup(ctx)
	defer stop()
	if err != nil {
		err = &usageError{fmt.Sprint(err), name + " --help"}
	} else {
		err = v.run(ctx, &streams{in: stdin, out: stdout, err: stderr, hangup: hangup})
	}
	if err != nil {
		configFlag{Config: flagValue(args, "--config")}.hold()
	}
	return report(stderr, err)
}
