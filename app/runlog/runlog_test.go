package runlog_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Records that name another owner than the recording or the files of the run do not show them.
func TestCheckOwner(t *testing.T) {
	dir := t.TempDir()
	d := setup.Directories{Audit: filepath.Join(dir, "audit"), Keys: filepath.Join(dir, "keys"),
		Recordings: filepath.Join(dir, "recordings"), Attachments: filepath.Join(dir, "attachments")}
	ann := caller.Owner{Principal: "ann", Kind: caller.User, Session: "ses_1"}
	recordings, err := replay.Open(d.Recordings, &replay.Options{Keys: d.Keys})
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := recordings.Create(replay.Head{RunID: "run_1", Principal: "ann"}, nil)
	if err == nil {
		err = recorder.Close(replay.Output{})
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := attachment.Open(d.Attachments, &attachment.Options{Keys: d.Keys})
	if err != nil {
		t.Fatal(err)
	}
	draft := files.Begin("run_2", ann, attachment.DefaultLimits)
	if _, err := draft.Add(attachment.Inspect([]byte("text"), "text/plain", ""), "a.txt"); err != nil {
		t.Fatal(err)
	}
	log := runlog.New(d, &config.Config{Replay: config.Replay{Keep: time.Hour}}, nil)
	for _, run := range []string{"run_1", "run_2"} {
		if err := log.CheckOwner(run, ann); err != nil {
			t.Errorf("the owner of %s: %v", run, err)
		}
		for _, other := range []caller.Owner{{Principal: "ben"}, {Principal: "ann", Issuer: "https://id.example"}, {}} {
			if err := log.CheckOwner(run, other); err == nil {
				t.Errorf("%+v is the owner of %s", other, run)
			}
		}
	}
	if err := log.CheckOwner("run_3", ann); err != nil {
		t.Errorf("a run without a recording and files: %v", err)
	}
}
