package verb

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/app/release/build"
	"github.com/alecthomas/kong"
)

// NewParser returns the parser of a command line. *exited is the exit code after the parser has
// printed --help or --version, and -1 before.
func NewParser(into any, name, description string, stdout, stderr io.Writer) (parser *kong.Kong, exited *int) {
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
	Do(ctx context.Context, s *Streams) error
}

// RunVerbless runs a command line without verbs.
func RunVerbless(ctx context.Context, v verbless, name, description string, args []string, stdin io.Reader, stdout,
	stderr io.Writer) int {
	stderr = Cleaned(stderr)
	parser, exited := NewParser(v, name, description, stdout, stderr)
	_, err := parser.Parse(args)
	if *exited >= 0 { // --help or --version has printed its output
		return *exited
	}
	ctx, hangup, stop := OnHangup(ctx)
	defer stop()
	if err != nil {
		err = &UsageError{fmt.Sprint(err), name + " --help"}
	} else {
		err = v.Do(ctx, &Streams{In: stdin, Out: stdout, Err: stderr, Hangup: hangup})
	}
	if err != nil {
		ConfigFlag{Config: FlagValue(args, "--config")}.Hold()
	}
	return Report(stderr, err)
}

// FlagValue returns the value of a flag in a list of arguments, or "".
func FlagValue(args []string, flag string) string {
	for i, arg := range args {
		if value, joined := strings.CutPrefix(arg, flag+"="); joined {
			return value
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
