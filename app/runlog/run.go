package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/redact"
)

// The states of listed runs.
const (
	OK         = "ok"
	Unfinished = "unfinished" // it is not done, or Airlock ended before it
	Suspended  = "suspended"  // it waits for a person without a sandbox
)

// Run is a run of the audit log as a list shows it.
type Run struct {
	ID         string `json:"run_id"`
	State      string `json:"state"` // ok, unfinished, suspended, or the type of its error
	Suspended  string `json:"suspended_since,omitempty"`
	Began      string `json:"began,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Language   string `json:"language,omitempty"`
	Principal  string `json:"principal,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	Profile    string `json:"profile,omitempty"`
	Calls      int    `json:"calls"`
	Approval   string `json:"approval_state,omitempty"`
	Limit      string `json:"limit,omitempty"` // the configuration's key of the limit that ended it

	Owner caller.Owner `json:"-"` // the owner of the run
	first uint64       // the number of its first record
}

// Summarize returns a run as a list shows it.
func Summarize(run audit.RunSummary) Run {
	listed := Run{ID: run.ID, State: Unfinished}
	if run.Start != nil {
		listed.start(*run.Start)
	}
	if run.Suspended != nil {
		listed.suspend(*run.Suspended)
	}
	if run.End != nil {
		listed.end(*run.End)
	}
	return listed
}

// IsOver reports whether the run has ended.
func (l Run) IsOver() bool { return l.State != Unfinished && l.State != Suspended }

// suspend sets the fields from the record with which the run was suspended.
func (l *Run) suspend(r audit.Record) { l.State, l.Suspended = Suspended, r.Time }

// resume sets the fields of a run that goes on.
func (l *Run) resume() {
	if l.State == Suspended {
		l.State, l.Suspended = Unfinished, ""
	}
}

// start sets the fields from the record of the start of the run.
func (l *Run) start(r audit.Record) {
	l.Began, l.Language, l.first = r.Time, r.Language, r.Seq
	l.Principal, l.SessionID, l.Profile, l.Owner = r.Principal, r.SessionID, r.Profile, ownerOf(r)
}

// end sets the fields from the record of the end of the run.
func (l *Run) end(r audit.Record) {
	l.State, l.Suspended = OK, ""
	if r.Outcome != audit.OutcomeOK {
		l.State = r.ErrorType
		if l.State == "" {
			l.State = r.Outcome
		}
	}
	l.DurationMS, l.Calls, l.Approval, l.Limit = r.DurationMS, r.Calls, r.ApprovalState, r.Limit
	if l.Principal == "" {
		l.Language, l.Principal, l.SessionID, l.Owner = r.Language, r.Principal, r.SessionID, ownerOf(r)
	}
	if l.first == 0 {
		l.first = r.Seq
	}
}

// ownerOf returns the owner of a run from its audit record.
func ownerOf(r audit.Record) caller.Owner {
	return caller.Owner{Principal: r.Principal, Kind: caller.Kind(r.CallerKind), Issuer: r.Issuer, Session: r.SessionID,
		Profile: r.Profile}
}

// Shown is a run with its recording and files.
type Shown struct {
	Run
	Result       json.RawMessage `json:"result,omitempty"` // of the envelope
	OutputDigest string          `json:"output_digest,omitempty"`
	Kept         bool            `json:"kept"` // code, result and output are kept
	Code         string          `json:"code,omitempty"`
	Stdout       string          `json:"stdout,omitempty"`
	Stderr       string          `json:"stderr,omitempty"`

	Files []attachment.File `json:"files,omitempty"` // that it attached
}

// Show returns a run from the log and from its recording, which is nil if the run was not
// recorded.
func Show(tree *audit.RunTree, recording *replay.Recording) Shown {
	shown := Shown{Run: Summarize(tree.Summary())}
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
	if strictjson.UnmarshalOpen(recording.Envelope, &envelope) == nil {
		shown.Result = envelope.Result
	}
	return shown
}

// LoadRecording reads the recording of a run. It does not create the directory of recordings.
func LoadRecording(directories setup.Directories, c config.Replay, runID string) (*replay.Recording, error) {
	return recordings(directories, c)(runID)
}

// recordings returns a function that reads recordings. It opens their store, which looks at all of them, only once.
func recordings(directories setup.Directories, c config.Replay) func(runID string) (*replay.Recording, error) {
	open := sync.OnceValues(func() (*replay.Store, error) {
		if c.Keep == 0 {
			return nil, errors.New("recordings are switched off (replay.keep)")
		}
		if _, err := os.Stat(directories.Recordings); err != nil {
			return nil, nil
		}
		return replay.Open(directories.Recordings,
			&replay.Options{Keys: directories.Keys, Keep: c.Keep, Size: c.Size})
	})
	return func(runID string) (*replay.Recording, error) {
		switch store, err := open(); {
		case err != nil:
			return nil, err
		case store == nil:
			return nil, fmt.Errorf("loading %q: %w", runID, replay.ErrNotFound)
		default:
			return store.Load(runID)
		}
	}
}

// OpenFiles opens the store of the files that runs attached, or returns nil if it does not exist.
func OpenFiles(directories setup.Directories, c config.Attachments) (*attachment.Store, error) {
	if _, err := os.Stat(directories.Attachments); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return attachment.Open(directories.Attachments,
		&attachment.Options{Keys: directories.Keys, Keep: c.Keep, Size: c.Size})
}

// FilesOf returns the files that a run attached, or nil if they are not kept.
func FilesOf(store *attachment.Store, runID string) ([]attachment.File, error) {
	if store == nil {
		return nil, nil
	}
	set, err := store.Files(runID)
	if errors.Is(err, attachment.ErrNotFound) {
		return nil, nil
	}
	return set.Files, err
}

// Redact removes the credentials of the configuration from arguments that are
// shown as they were: the code can have written one.
func Redact(tree *audit.RunTree, redactor *redact.Redactor) {
	for i := range tree.Calls {
		c := &tree.Calls[i]
		shown := []*json.RawMessage{&c.Arguments}
		for _, r := range []*audit.Record{c.Intent, c.Outcome} {
			if r != nil {
				shown = append(shown, &r.Arguments)
			}
		}
		for j := range c.Approvals {
			shown = append(shown, &c.Approvals[j].Arguments)
		}
		for _, arguments := range shown {
			if len(*arguments) == 0 {
				continue
			}
			cleaned, _, err := redactor.HeldJSON(*arguments)
			if err != nil {
				cleaned = json.RawMessage("null")
			}
			*arguments = cleaned
		}
	}
}
