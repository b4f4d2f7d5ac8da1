// Package runs has the verbs that run programs, list and show runs, and repeat them.
package runs

import (
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"

	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Verbs are the verbs of airlock runs.
type Verbs struct {
	List runsListVerb `cmd:"" help:"List the newest runs: when, for whom, how each ended."`
	Show runsShowVerb `cmd:"" help:"Show one run: how it ended and what came of it, its code and what it printed."`

	Suspend runsSuspendVerb `cmd:"" help:"Free the sandbox of a run that waits for a person, at once."`
	Resume  runsResumeVerb  `cmd:"" help:"Let a suspended run go on before its calls are answered."`
}

type runsListVerb struct {
	verb.AuditFlags
	verb.PeriodFlags
	Lines int  `short:"n" default:"20" help:"How many runs."`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists runs, newest first.
func (v *runsListVerb) Run(s *verb.Streams) error {
	if v.Lines < 1 {
		return verb.Usage("-n must be a number of runs, 1 or more", "airlock runs list -n 20")
	}
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	period, err := v.Period()
	if err != nil {
		return err
	}
	if c, err := v.LoadState(io.Discard); err == nil && c.Cluster.Database != "" {
		list, err := daemon.AllRuns(listing.RunQuery{Period: period, Limit: v.Lines})
		if !errors.Is(err, join.ErrNone) {
			return v.printAll(s, list, err)
		}
		fmt.Fprintln(s.Err, "airlock: no daemon runs here, so these are the runs of this machine alone")
	}
	var found []audit.RunSummary
	if !verb.IsMissing(directories.Audit) {
		if found, err = audit.Runs(directories.Audit, v.Lines, period); err != nil {
			return err
		}
	}
	runs := []runlog.Run{}
	for _, run := range found {
		runs = append(runs, runlog.Summarize(run))
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintln(s.Err, "airlock: the audit log has no run yet")
		return err
	}
	return verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, run := range runs {
			t.Add(verb.Text(run.ID, verb.Plain), verb.Text(verb.ShortBegan(run.Began), verb.Dim),
				verb.Text(run.State, stateStyle(run.State)),
				verb.Text(run.Language, verb.Plain),
				verb.Text(took(run), verb.Plain), verb.Text(verb.Counted(run.Calls, "call"), verb.Plain),
				verb.Text(verb.OneLine(run.Principal, 40), verb.Dim))
		}
		return t.Write(w)
	})
}

// printAll prints the runs of all nodes of the cluster.
func (v *runsListVerb) printAll(s *verb.Streams, list listing.Runs, err error) error {
	if err != nil {
		return err
	}
	rows := append([]listing.Run{}, list.Rows[:min(len(list.Rows), v.Lines)]...)
	missing := listing.Missing(list.Unanswered)
	if v.JSON {
		all := map[string]any{"runs": rows}
		if missing != "" {
			all["unanswered"], all["problem"] = list.Unanswered, missing
		}
		return verb.PrintLine(s.Out, all)
	}
	if missing != "" {
		fmt.Fprintln(s.Err, "airlock: "+missing)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(s.Err, "airlock: the audit logs have no run yet")
		return err
	}
	return verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, run := range rows {
			took, style := run.Took().String(), stateStyle(run.State)
			if run.Going {
				style = verb.Yellow
			}
			t.Add(verb.Text(run.ID, verb.Plain), verb.Text(verb.Clean(run.Node), verb.Plain),
				verb.Text(verb.ShortBegan(run.Began.Format(time.RFC3339Nano)), verb.Dim), verb.Text(run.State, style),
				verb.Text(run.Language, verb.Plain), verb.Text(took, verb.Plain),
				verb.Text(verb.Counted(run.Calls, "call"), verb.Plain),
				verb.Text(verb.OneLine(run.Owner, 40), verb.Dim))
		}
		return t.Write(w)
	})
}

func stateStyle(state string) verb.Style {
	switch state {
	case runlog.OK:
		return verb.Green
	case runlog.Unfinished, runlog.Suspended:
		return verb.Yellow
	}
	return verb.Red
}

func took(run runlog.Run) string {
	if !run.IsOver() {
		return "-"
	}
	return (time.Duration(run.DurationMS) * time.Millisecond).String()
}

type runsShowVerb struct {
	verb.AuditFlags
	RunID string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	Code  bool   `help:"Print its code, and nothing else."`
	Logs  bool   `help:"Print what it wrote to stdout and stderr, and nothing else."`
	JSON  bool   `name:"json" help:"Print JSON."`
	Files bool   `help:"List the files that it attached, and nothing else."`
	Save  string `placeholder:"NAME" help:"Write one of its files to PATH."`
	Path  string `arg:"" optional:"" help:"Where --save writes to: a new file, a directory, or - for stdout; by default NAME here."`
}

// Run shows a run from its records in the audit log and from its encrypted recording.
func (v *runsShowVerb) Run(s *verb.Streams) error {
	c, err := v.LoadState(s.Err)
	if err != nil {
		return err
	}
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	tree, err := verb.FindRun(directories.Audit, v.RunID)
	if errors.Is(err, audit.ErrNoRun) && c.Cluster.Database != "" {
		err = verb.WithHint(err, "airlock audit show "+visible.Word(v.RunID)+" --cluster, or airlock runs list",
			verb.ExitFailed)
	}
	if err != nil {
		return err
	}
	recording, unkept := runlog.LoadRecording(directories, c.Replay, tree.ID)
	run := runlog.Show(tree, recording)
	store, err := runlog.OpenFiles(directories, c.Attachments)
	if err == nil {
		run.Files, err = runlog.FilesOf(store, tree.ID)
	}
	if err != nil {
		return err
	}
	switch {
	case v.Save != "":
		return saveFile(s, store, tree.ID, v.Save, v.Path)
	case v.Path != "":
		return verb.Usage("a path is only for --save",
			"airlock runs show "+tree.ID+" --save NAME "+visible.Word(v.Path))
	case v.Files && !v.JSON:
		return printFiles(s, tree.ID, run.Files)
	case v.JSON:
		return verb.PrintLine(s.Out, run)
	case unkept != nil && (v.Code || v.Logs):
		return verb.WithHint(unkept, "recordings are kept for the time of replay.keep; airlock audit show "+tree.ID+
			" shows what the log has", verb.ExitFailed)
	case v.Code || v.Logs:
		return verb.Paged(s, func(w io.Writer) error { return v.printKept(w, run) })
	}
	return verb.Paged(s, func(w io.Writer) error {
		if err := audit.WriteTree(w, tree); err != nil {
			return err
		}
		return errors.Join(printCame(w, run, unkept), printFileCount(w, run))
	})
}

// printKept prints the code, the output, or both under headings.
func (v *runsShowVerb) printKept(w io.Writer, run runlog.Shown) error {
	parts := []struct {
		name, text string
		wanted     bool
	}{{"code", run.Code, v.Code}, {"stdout", run.Stdout, v.Logs}, {"stderr", run.Stderr, v.Logs}}
	for _, part := range parts {
		if !part.wanted || part.text == "" {
			continue
		}
		if v.Code && v.Logs {
			if _, err := fmt.Fprintln(w, verb.PainterFor(w).Paint(verb.Bold, "── "+part.name)); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, lines(forReader(w, part.text))); err != nil {
			return err
		}
	}
	return nil
}

// lines returns text with a newline at the end.
func lines(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// printCame prints the result of the run, and the commands that show its code and its output.
func printCame(w io.Writer, run runlog.Shown, unkept error) error {
	if unkept != nil {
		_, err := fmt.Fprintf(w, "\nIts code and its output are not kept: %v\n", unkept)
		return err
	}
	result := "not kept by the version that made the run"
	if len(run.Result) > 0 {
		result = forReader(w, string(run.Result))
	}
	_, err := fmt.Fprintf(w, "\nresult  %s\n", result)
	if err == nil {
		_, err = fmt.Fprintf(
			w, "code    %d lines: airlock runs show %s --code\nlogs    %d bytes of stdout, %d of stderr: airlock "+
				"runs show %s --logs\n",
			strings.Count(lines(run.Code), "\n"), run.ID, len(run.Stdout), len(run.Stderr), run.ID)
	}
	return err
}

// printFileCount prints the number of files that the run attached, if any.
func printFileCount(w io.Writer, run runlog.Shown) error {
	if len(run.Files) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "files   %d: airlock runs show %s --files\n", len(run.Files), run.ID)
	return err
}
