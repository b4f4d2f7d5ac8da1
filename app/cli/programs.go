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

// Program is the command line of one program. It returns the process's exit code;
// cancelling ctx ends what runs.
type Program func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Process runs a command line as this process, with its arguments, streams and signals,
// and returns the exit code. Package fastpath has looked at the arguments before, and may
// have ended the process, or begun what this goes on with.
func Process(program Program) int {
	delayFirstCollection()
	if err := errors.Join(procfs.CloseOnExec(), procfs.EraseEnvironment()); err != nil {
		fmt.Fprintf(os.Stderr, "airlock: programs that this one starts can read its environment or use its files: %v\n", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A reader that has gone must not end the program before it has cleaned up:
	// the write that fails says so. Ignoring the signal would pass on to servers.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if fastpath.Interrupted() { // before signals were listened to here
		cancel()
	}
	return program(ctx, os.Args[1:], fastpath.Stdin(), os.Stdout, os.Stderr)
}

// Named returns the command line of the name that a program was started by: a link
// to airlock under another program's name is that program.
func Named(name string) Program {
	switch filepath.Base(name) {
	case "qwed-mcp":
		return GatewayMain
	case "mcp-kernel-server":
		return KernelMain
	}
	return Main
}

// newParser returns the parser of a command line, and what --help or --version, once
// printed, ended with: -1 for neither.
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
		panic(err) // the grammar is ours
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
	if *exited >= 0 { // what was asked for is printed
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
