package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
)

type runsVerbs struct {
	List runsListVerb `cmd:"" help:"List the newest runs: when, for whom, how each ended."`
	Show runsShowVerb `cmd:"" help:"Show one run: how it ended and what came of it, its code and what it printed."`
}

// The words for how a run stands.
const (
	runOK         = "ok"
	runUnfinished = "unfinished" // it goes on, or Airlock ended before it did
)

type runsListVerb struct {
	auditFlags
	Lines int  `short:"n" default:"20" help:"How many runs."`
	JSON  bool `name:"json" help:"Print JSON."`
}

// listedRun is what --json prints for one run.
type listedRun struct {
	ID         string `json:"run_id"`
	State      string `json:"state"` // ok, unfinished, or the type of its error
	Began      string `json:"began,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Language   string `json:"language,omitempty"`
	Principal  string `json:"principal,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	Profile    string `json:"profile,omitempty"`
	Calls      int    `json:"calls"`
	Approval   string `json:"approval_state,omitempty"`
	Limit      string `json:"limit,omitempty"` // the configuration's key of the limit that ended it
}

// Run lists runs, the newest first.
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
	runs := []listedRun{}
	for _, run := range found {
		runs = append(runs, listRun(run))
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

func listRun(run audit.RunSummary) listedRun {
	listed := listedRun{ID: run.ID, State: runUnfinished}
	if run.Start != nil {
		listed.Began, listed.Language = run.Start.Time, run.Start.Language
		listed.Principal, listed.SessionID, listed.Profile = run.Start.Principal, run.Start.SessionID, run.Start.Profile
	}
	if end := run.End; end != nil {
		listed.State = runOK
		if end.Outcome != audit.OutcomeOK {
			listed.State = end.ErrorType
			if listed.State == "" {
				listed.State = end.Outcome
			}
		}
		listed.DurationMS, listed.Calls, listed.Approval, listed.Limit = end.DurationMS, end.Calls, end.ApprovalState, end.Limit
		if listed.Principal == "" {
			listed.Language, listed.Principal, listed.SessionID = end.Language, end.Principal, end.SessionID
		}
	}
	return listed
}

func stateStyle(state string) style {
	switch state {
	case runOK:
		return green
	case runUnfinished:
		return yellow
	}
	return red
}

// shortBegan is the local time to the second.
func shortBegan(text string) string {
	began, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "-"
	}
	return began.Local().Format(time.DateTime)
}

func took(run listedRun) string {
	if run.State == runUnfinished {
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

// shownRun is what --json prints.
type shownRun struct {
	listedRun
	Result       json.RawMessage `json:"result,omitempty"` // of the envelope
	OutputDigest string          `json:"output_digest,omitempty"`
	Kept         bool            `json:"kept"` // the code, the result and the output are
	Code         string          `json:"code,omitempty"`
	Stdout       string          `json:"stdout,omitempty"`
	Stderr       string          `json:"stderr,omitempty"`

	Files []attachment.File `json:"files,omitempty"` // that it attached
}

// Run shows a run: what the audit log says about it, and what its encrypted
// recording has kept.
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
	recording, unkept := loadRecording(directories, c.Replay, tree.ID)
	run := showRun(tree, recording)
	store, err := openFiles(directories, c.Attachments)
	if err == nil {
		run.Files, err = filesOf(store, tree.ID)
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

// printKept prints the code, the output, or both with a heading each.
func (v *runsShowVerb) printKept(w io.Writer, run shownRun) error {
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

// lines returns text that ends its last line.
func lines(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// printCame prints what came of the run, with how to see more.
func printCame(w io.Writer, run shownRun, unkept error) error {
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

// printFileCount says how many files the run attached, if any.
func printFileCount(w io.Writer, run shownRun) error {
	if len(run.Files) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "files   %d: airlock runs show %s --files\n", len(run.Files), run.ID)
	return err
}

// loadRecording reads the run's recording, and makes nothing where there is none.
func loadRecording(directories system.Directories, c config.Replay, runID string) (*replay.Recording, error) {
	if c.Keep == 0 {
		return nil, errors.New("recordings are switched off (replay.keep)")
	}
	if _, err := os.Stat(directories.Recordings); err != nil {
		return nil, fmt.Errorf("loading %q: %w", runID, replay.ErrNotFound)
	}
	store, err := replay.Open(directories.Recordings, &replay.Options{Keys: directories.Keys, Keep: c.Keep, Size: c.Size})
	if err != nil {
		return nil, err
	}
	return store.Load(runID)
}

func showRun(tree *audit.RunTree, recording *replay.Recording) shownRun {
	shown := shownRun{listedRun: listRun(audit.RunSummary{ID: tree.ID, Start: tree.Start, End: tree.End})}
	if tree.End == nil {
		shown.Calls = len(tree.Calls)
	} else {
		shown.OutputDigest = tree.End.OutputDigest
	}
	if recording == nil {
		return shown
	}
	shown.Kept, shown.Code, shown.Stdout, shown.Stderr = true, recording.Code, recording.Stdout, recording.Stderr
	var envelope struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(recording.Envelope, &envelope) == nil {
		shown.Result = envelope.Result
	}
	return shown
}
