package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/audit"
)

type runsVerbs struct {
	List runsListVerb `cmd:"" help:"List the newest runs: when, for whom, how each ended."`
	Show runsShowVerb `cmd:"" help:"Show one run: how it ended and what came of it, its code and what it printed."`
}

type runsListVerb struct {
	auditFlags
	Lines int  `short:"n" default:"20" help:"How many runs."`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists runs, newest first.
func (v *runsListVerb) Run(s *streams) error {
	if v.Lines < 1 {
		return &usageError{"-n takes a number of runs, from 1", "airlock runs list -n 20"}
	}
	directories, err := v.find()
	if err != nil {
		return err
	}
	var found []audit.RunSummary
	if !isMissing(directories.Audit) {
		if found, err = audit.Runs(directories.Audit, v.Lines); err != nil {
			return err
		}
	}
	runs := []system.ListedRun{}
	for _, run := range found {
		runs = append(runs, system.ListRun(run))
	}
	if v.JSON {
		return printLine(s.out, map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintln(s.err, "airlock: the audit log has no run yet")
		return err
	}
	return paged(s, func(w io.Writer) error {
		var t table
		for _, run := range runs {
			t.add(cell{run.ID, plain}, cell{shortBegan(run.Began), dim}, cell{run.State, stateStyle(run.State)}, cell{run.Language, plain},
				cell{took(run), plain}, cell{counted(run.Calls, "call"), plain}, cell{oneLine(run.Principal, 40), dim})
		}
		return t.write(w)
	})
}

func stateStyle(state string) style {
	switch state {
	case system.RunOK:
		return green
	case system.RunUnfinished:
		return yellow
	}
	return red
}

// shortBegan returns the local time to the second.
func shortBegan(text string) string {
	began, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "-"
	}
	return began.Local().Format(time.DateTime)
}

func took(run system.ListedRun) string {
	if run.State == system.RunUnfinished {
		return "-"
	}
	return (time.Duration(run.DurationMS) * time.Millisecond).String()
}

type runsShowVerb struct {
	auditFlags
	RunID string `arg:"" name:"run" help:"The run's ID, or the beginning of it."`
	Code  bool   `help:"Print its code, and nothing else."`
	Logs  bool   `help:"Print what it wrote to stdout and stderr, and nothing else."`
	JSON  bool   `name:"json" help:"Print JSON."`
	Files bool   `help:"List the files that it attached, and nothing else."`
	Save  string `placeholder:"NAME" help:"Write one of its files to PATH."`
	Path  string `arg:"" optional:"" help:"Where --save writes to: a new file, a directory, or - for stdout; by default NAME here."`
}

// Run shows a run from its records in the audit log and from its encrypted recording.
func (v *runsShowVerb) Run(s *streams) error {
	c, err := v.loadPlaces()
	if err != nil {
		return err
	}
	directories, err := system.FindDirectories(c)
	if err != nil {
		return err
	}
	tree, err := findRun(directories.Audit, v.RunID)
	if err != nil {
		return err
	}
	recording, unkept := system.LoadRecording(directories, c.Replay, tree.ID)
	run := system.ShowRun(tree, recording)
	store, err := system.OpenFiles(directories, c.Attachments)
	if err == nil {
		run.Files, err = system.FilesOf(store, tree.ID)
	}
	if err != nil {
		return err
	}
	switch {
	case v.Save != "":
		return saveFile(s, store, tree.ID, v.Save, v.Path)
	case v.Path != "":
		return &usageError{"a path is only for --save", "airlock runs show " + tree.ID + " --save NAME " + v.Path}
	case v.Files && !v.JSON:
		return printFiles(s, tree.ID, run.Files)
	case v.JSON:
		return printLine(s.out, run)
	case unkept != nil && (v.Code || v.Logs):
		return &hinted{unkept, "recordings are kept for the time of replay.keep; airlock audit show " + tree.ID + " says what the log has", ExitFailed}
	case v.Code || v.Logs:
		return paged(s, func(w io.Writer) error { return v.printKept(w, run) })
	}
	return paged(s, func(w io.Writer) error {
		if err := audit.WriteTree(w, tree); err != nil {
			return err
		}
		return errors.Join(printCame(w, run, unkept), printFileCount(w, run))
	})
}

// printKept prints the code, the output, or both under headings.
func (v *runsShowVerb) printKept(w io.Writer, run system.ShownRun) error {
	parts := []struct {
		name, text string
		wanted     bool
	}{{"code", run.Code, v.Code}, {"stdout", run.Stdout, v.Logs}, {"stderr", run.Stderr, v.Logs}}
	for _, part := range parts {
		if !part.wanted || part.text == "" {
			continue
		}
		if v.Code && v.Logs {
			if _, err := fmt.Fprintln(w, painterFor(w).paint(bold, "── "+part.name)); err != nil {
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
func printCame(w io.Writer, run system.ShownRun, unkept error) error {
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
		_, err = fmt.Fprintf(w, "code    %d lines: airlock runs show %s --code\nlogs    %d bytes of stdout, %d of stderr: airlock runs show %s --logs\n",
			strings.Count(lines(run.Code), "\n"), run.ID, len(run.Stdout), len(run.Stderr), run.ID)
	}
	return err
}

// printFileCount prints the number of files that the run attached, if any.
func printFileCount(w io.Writer, run system.ShownRun) error {
	if len(run.Files) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "files   %d: airlock runs show %s --files\n", len(run.Files), run.ID)
	return err
}
