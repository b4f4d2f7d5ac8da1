package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Run is airlock run.
type Run struct {
	verb.Profiled
	Lang     string        `aliases:"language" help:"python, or node for JavaScript and TypeScript (javascript, js, typescript, ts and py work too); by default what the file's name says, else python."`
	Timeout  time.Duration `help:"Shorter than the configured time limit; never longer."`
	Network  []string      `placeholder:"NAME:PORT" help:"A host that the program may connect to, if the configuration lists it and policy permits it. May be repeated."`
	JSONLogs bool          `name:"json-logs" help:"Write Airlock's own log lines as JSON."`
	JSON     bool          `name:"json" help:"Print the line of JSON on a terminal, too. Elsewhere it is always printed."`
	File     string        `arg:"" optional:"" default:"-" help:"The program; - reads it from stdin."`
}

// isForPerson reports whether the outcome is shown to a person at a terminal instead of as JSON.
func (v *Run) isForPerson(s *verb.Streams) bool { return !v.JSON && verb.IsTerminal(s.Out) }

// Run makes one run. It uses the running daemon of the same user, state directory and
// configuration, or makes the run in this process. If the command line is valid, it prints
// exactly one line of JSON on stdout, also after errors, unless stdout is a terminal.
func (v *Run) Run(ctx context.Context, s *verb.Streams) error {
	if sent := fastpath.Sent(); sent != nil {
		if err := v.finish(ctx, s, sent); !errors.Is(err, errEnding) {
			return err
		}
	}
	code, err := v.read(s.In)
	if err != nil {
		v.Hold()
		return v.refuse(s, orchestrator.Request{Language: v.Language()}, errortype.InvalidRequest, err)
	}
	request := orchestrator.Request{
		Language: v.Language(), Code: code, Timeout: v.Timeout, Caller: verb.LocalCaller(), Network: v.Network,
		Alone: true,
	}
	if err := request.Check(); err != nil {
		v.Hold()
		return v.refuse(s, request, errortype.InvalidRequest, err)
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return v.refuse(s, request, errortype.Sandbox, err)
	}
	if err := verb.MayUse(c); err != nil {
		return v.refuse(s, request, errortype.PolicyDenied, err)
	}
	if request.Caller.Profile, err = verb.ProfileName(c, v.Profile); err != nil {
		return v.refuse(s, request, errortype.Sandbox, err)
	}
	if _, err := request.Hosts(c.Network(request.Caller.Profile)); err != nil {
		return v.refuse(s, request, errortype.InvalidRequest, err)
	}
	if conn, err := daemon.JoinRun(daemon.Host{Config: c, Version: verb.Version,
		Profile: request.Caller.Profile}); err == nil {
		if err = v.sendThere(ctx, s, conn, request); !errors.Is(err, errEnding) {
			return err
		}
	}
	return v.runLocal(ctx, s, c, request)
}

// runLocal makes the run in this process.
func (v *Run) runLocal(ctx context.Context, s *verb.Streams, c *config.Config, request orchestrator.Request) error {
	_, logger, end, err := verb.BeginExport(ctx, verb.NewLogger(s.Err, v.JSONLogs, slog.LevelWarn), false)
	if err != nil {
		return err
	}
	defer end()
	var live atomic.Pointer[orchestrator.Live]
	request.OnStart = func(l orchestrator.Live) { live.Store(&l) }
	line := verb.StartProgress(s, func() string {
		if l := live.Load(); l != nil {
			return running(l.Progress())
		}
		return "starting the servers and a sandbox"
	})
	defer line.Stop()
	opened, err := verb.OpenSystem(ctx, c, s.Err, system.Options{
		Tools: upstreams.CachedThenServers, Code: request.Code, Logger: logger, Profile: request.Caller.Profile,
	})
	if err != nil {
		line.Stop()
		return v.refuse(s, request, errortype.Sandbox, err)
	}
	desk := opened.Approvals()
	stopAsking := approvals.AskHere(desk, request.Caller.Session, s.Err, line)
	outcome, err := opened.Orchestrator().Run(ctx, request)
	stopAsking()
	line.Stop()
	if err != nil {
		err = setup.Advise(err)
		return errors.Join(v.refuse(s, request, orchestrator.RefusalType(err), err), opened.Close())
	}
	printed := v.printOutcome(s, outcome)
	if err := opened.Close(); err != nil {
		fmt.Fprintf(s.Err, "airlock: %v\n", err)
	}
	return printed
}

// running returns the text of the progress line of a run that has begun.
func running(progress string) string {
	if progress == "" {
		return "running"
	}
	return "running, " + progress
}

// read returns the program. It reads at most one byte more than the limit, which is enough to
// refuse a larger program.
func (v *Run) read(stdin io.Reader) ([]byte, error) {
	in := stdin
	if v.File != "-" {
		f, err := os.Open(v.File)
		if err != nil {
			return nil, verb.Usage(fmt.Sprintf("the program %q cannot be read: %v", v.File, errors.Unwrap(err)),
				"airlock run FILE, or airlock run - to read it from stdin")
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, verb.Usage(fmt.Sprintf("the program %q is a directory", v.File), "airlock run FILE")
		}
		in = f
	}
	if _, known := program.ParseLanguage(v.Lang); v.Lang != "" && !known {
		return nil, verb.Usage(fmt.Sprintf("the language %q is unknown", v.Lang),
			"airlock run --lang python FILE, or --lang node for JavaScript and TypeScript")
	}
	code, err := io.ReadAll(io.LimitReader(in, program.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	return code, nil
}

// Language returns the language of the program.
func (v *Run) Language() string { return program.LanguageOf(v.Lang, v.File) }

// printOutcome prints what the code wrote to stderr and the envelope to stdout.
func (v *Run) printOutcome(s *verb.Streams, outcome *orchestrator.Outcome) error {
	line, err := outcome.Envelope.Line()
	if err != nil {
		return err
	}
	failure := outcome.Envelope.Result.Error
	return v.printRun(s, &join.RunOutcome{
		Line: line, Printed: outcome.Stdout + outcome.Stderr, OK: failure == nil, Refused: failure != nil &&
			failure.Refusal(),
	})
}

// printRun prints what the code wrote to stderr, and the line of its envelope to stdout. If the
// run failed, it returns an error with the exit code.
func (v *Run) printRun(s *verb.Streams, outcome *join.RunOutcome) error {
	stdout, isFile := verb.Behind(s.Out).(*os.File)
	if stderr, bothAre := verb.Behind(s.Err).(*os.File); isFile && bothAre {
		outcome.EndLine(stdout, stderr)
	}
	if outcome.Printed != "" { // building the redactor is slow, so do it only if there is text
		if _, err := io.WriteString(s.Err, forReader(s.Err, outcome.Printed)); err != nil {
			return fmt.Errorf("printing the logs: %w", err)
		}
	}
	show := printLineOf
	if v.isForPerson(s) {
		seen := "" // on the same terminal
		if verb.IsTerminal(s.Err) {
			seen = outcome.Printed
		}
		show = func(out io.Writer, line []byte) error { return showOutcome(out, line, seen) }
	}
	if err := show(s.Out, outcome.Line); err != nil {
		return err
	}
	if code := outcome.ExitCode(); code != verb.ExitDone {
		return verb.ExitError(code)
	}
	return nil
}

// forReader returns text unchanged, unless out is a terminal. For a terminal, control characters
// are escaped.
func forReader(out io.Writer, text string) string {
	if !verb.IsTerminal(out) {
		return text
	}
	return visible.Lines(text)
}

// refuse prints the envelope of a run that could not start, and returns err.
func (v *Run) refuse(s *verb.Streams, request orchestrator.Request, kind string, err error) error {
	if v.isForPerson(s) {
		return err // printed on stderr
	}
	return errors.Join(err,
		printEnvelope(s.Out, orchestrator.Refused(request, verb.Version, kind, credentials.Sentence(err.Error()))))
}

func printEnvelope(out io.Writer, envelope orchestrator.Envelope) error {
	line, err := envelope.Line()
	if err != nil {
		return err
	}
	return printLineOf(out, line)
}

// printLineOf prints the line of an envelope.
func printLineOf(out io.Writer, line []byte) error {
	if _, err := out.Write(line); err != nil {
		return fmt.Errorf("printing the envelope: %w", err)
	}
	return nil
}
