package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/visible"
)

type runVerb struct {
	profiled
	Lang     string        `aliases:"language" help:"python, or node for JavaScript and TypeScript (javascript, js, typescript, ts and py work too); by default what the file's name says, else python."`
	Timeout  time.Duration `help:"Shorter than the configured time limit; never longer."`
	JSONLogs bool          `name:"json-logs" help:"Write Airlock's own log lines as JSON."`
	JSON     bool          `name:"json" help:"Changes nothing: what is printed is JSON already."`
	File     string        `arg:"" optional:"" default:"-" help:"The program; - reads it from stdin."`
}

// Run makes one run. It uses the running daemon of the same user, state directory and
// configuration, or makes the run in this process. If the command line is valid, it prints
// exactly one line of JSON on stdout, also after errors.
func (v *runVerb) Run(ctx context.Context, s *streams) error {
	if sent := fastpath.Sent(); sent != nil {
		if err := v.finish(ctx, s, sent); !errors.Is(err, errEnding) {
			return err
		}
	}
	code, err := v.read(s.in)
	if err != nil {
		v.hold()
		return refuse(s, orchestrator.Request{Language: v.language()}, errortype.InvalidRequest, err)
	}
	request := orchestrator.Request{
		Language: v.language(), Code: code, Timeout: v.Timeout, Caller: localCaller(),
	}
	if err := request.Check(); err != nil {
		v.hold()
		return refuse(s, request, errortype.InvalidRequest, err)
	}
	c, err := v.load(s.err)
	if err != nil {
		return refuse(s, request, errortype.Sandbox, err)
	}
	if request.Caller.Profile, err = profileName(c, v.Profile); err != nil {
		return refuse(s, request, errortype.Sandbox, err)
	}
	if conn, err := daemon.JoinRun(daemon.Host{Config: c, Version: version, Profile: request.Caller.Profile}); err == nil {
		if err = sendThere(ctx, s, conn, request); !errors.Is(err, errEnding) {
			return err
		}
	}
	return v.alone(ctx, s, c, request)
}

// alone makes the run in this process.
func (v *runVerb) alone(ctx context.Context, s *streams, c *config.Config, request orchestrator.Request) error {
	_, logger, end, err := beginExport(ctx, newLogger(s.err, v.JSONLogs, slog.LevelWarn), false)
	if err != nil {
		return err
	}
	defer end()
	done := progress(s, "starting the servers and a sandbox")
	opened, err := openSystem(ctx, c, s.err, system.Options{
		Tools: system.CachedThenServers, Code: request.Code, Logger: logger, Profile: request.Caller.Profile,
	})
	done()
	if err != nil {
		return refuse(s, request, errortype.Sandbox, err)
	}
	desk := opened.Approvals()
	stopAsking := askHere(desk, request.Caller.Session, s.err)
	outcome, err := opened.Orchestrator().Run(ctx, request)
	stopAsking()
	if err != nil {
		err = system.Advise(err)
		return errors.Join(refuse(s, request, orchestrator.RefusalType(err), err), opened.Close())
	}
	printed := printOutcome(s, outcome)
	if err := opened.Close(); err != nil {
		fmt.Fprintf(s.err, "airlock: %v\n", err)
	}
	return printed
}

// read returns the program. It reads at most one byte more than the limit, which is enough to
// refuse a larger program.
func (v *runVerb) read(stdin io.Reader) ([]byte, error) {
	in := stdin
	if v.File != "-" {
		f, err := os.Open(v.File)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("the program %q cannot be read: %v", v.File, errors.Unwrap(err)), "airlock run FILE, or airlock run - to read it from stdin"}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, &usageError{fmt.Sprintf("the program %q is a directory", v.File), "airlock run FILE"}
		}
		in = f
	}
	if _, known := program.ParseLanguage(v.Lang); v.Lang != "" && !known {
		return nil, &usageError{fmt.Sprintf("the language %q is unknown", v.Lang), "airlock run --lang python FILE, or --lang node for JavaScript and TypeScript"}
	}
	code, err := io.ReadAll(io.LimitReader(in, program.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	return code, nil
}

func (v *runVerb) language() string { return program.LanguageOf(v.Lang, v.File) }

// printOutcome prints what the code wrote to stderr and the envelope to stdout.
func printOutcome(s *streams, outcome *orchestrator.Outcome) error {
	line, err := outcome.Envelope.Line()
	if err != nil {
		return err
	}
	failure := outcome.Envelope.Result.Error
	return printRun(s, &join.RunOutcome{
		Line: line, Printed: outcome.Stdout + outcome.Stderr, OK: failure == nil, Refused: failure != nil && failure.Refusal(),
	})
}

// printRun prints what the code wrote to stderr, and the line of its envelope to stdout. If the
// run failed, it returns an error with the exit code.
func printRun(s *streams, outcome *join.RunOutcome) error {
	stdout, isFile := behind(s.out).(*os.File)
	if stderr, bothAre := behind(s.err).(*os.File); isFile && bothAre {
		outcome.EndLine(stdout, stderr)
	}
	if outcome.Printed != "" { // building the redactor is slow, so do it only if there is text
		if _, err := io.WriteString(s.err, forReader(s.err, outcome.Printed)); err != nil {
			return fmt.Errorf("printing the logs: %w", err)
		}
	}
	if err := printLineOf(s.out, outcome.Line); err != nil {
		return err
	}
	if code := outcome.ExitCode(); code != ExitDone {
		return exitError(code)
	}
	return nil
}

// forReader returns text unchanged, unless out is a terminal. For a terminal, control characters
// are escaped.
func forReader(out io.Writer, text string) string {
	if !isTerminal(out) {
		return text
	}
	return visible.Lines(text)
}

// refuse prints the envelope of a run that could not start, and returns err.
func refuse(s *streams, request orchestrator.Request, kind string, err error) error {
	return errors.Join(err, printEnvelope(s.out, orchestrator.Refused(request, version, kind, system.Sentence(err.Error()))))
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
