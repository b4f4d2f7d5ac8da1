package setup

import (
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Directories are the absolute paths that a system works in.
type Directories struct {
	Home       string // the state directory: images, pins and everything that has no separate directory
	Audit      string // the audit log
	Keys       string // keys that sign the log and encrypt recordings
	Wrappers   string // generated wrappers that sandboxes mount
	Approvals  string // open questions
	Recordings string // recordings of runs, for replays

	Attachments string // files that runs attached
	Sessions    string // files that the runs of one session share
}

// FindDirectories returns the directories that the configuration and $AIRLOCK_HOME name.
// It does not create them.
func FindDirectories(c *config.Config) (Directories, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return Directories{}, err
	}
	directories := Directories{
		Home: home, Audit: store.Audit(home), Keys: store.Keys(home),
		Wrappers: store.Wrappers(home), Approvals: store.Approvals(home), Recordings: store.Recordings(home),
		Attachments: store.Attachments(home), Sessions: store.Sessions(home),
	}
	if c.Audit.Path != "" {
		directories.Audit = c.Audit.Path
	}
	return directories, nil
}
