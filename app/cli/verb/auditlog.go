package verb

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
)

// AuditFlags are the flags with which the log is found.
type AuditFlags struct{ ConfigFlag }

// Find returns the directories of the log and of its keys.
func (f AuditFlags) Find(stderr io.Writer) (setup.Directories, error) {
	c, err := f.LoadState(stderr)
	if err != nil {
		return setup.Directories{}, err
	}
	return setup.FindDirectories(c)
}

// FindRun returns the records of the run whose ID begins with id.
func FindRun(dir, id string) (*audit.RunTree, error) { return FindRunIn(dir, id, audit.Period{}) }

// FindRunIn is findRun for the runs with records in a period.
func FindRunIn(dir, id string, period audit.Period) (*audit.RunTree, error) {
	if IsMissing(dir) {
		return nil, &Hinted{audit.ErrNoRun, "airlock runs list", ExitFailed}
	}
	tree, err := audit.ShowPeriod(dir, id, period)
	if errors.Is(err, audit.ErrNoRun) {
		err = &Hinted{err, "airlock runs list", ExitFailed}
	}
	return tree, err
}

// SuspendedRuns returns since when runs are suspended, by their IDs, as the audit log has it. It is empty if the log
// cannot be read, because the questions of runs must be shown in any case.
func SuspendedRuns() map[string]string {
	c, err := ConfigFlag{}.LoadState(io.Discard)
	if err != nil {
		return nil
	}
	directories, err := setup.FindDirectories(c)
	if err != nil || IsMissing(directories.Audit) {
		return nil
	}
	suspended := map[string]string{}
	_, _, err = runlog.New(directories, c, credentials.Printed()).List(func(run runlog.Run) bool {
		if run.State == runlog.Suspended {
			suspended[run.ID] = run.Suspended
		}
		return false
	}, 0, 0)
	if err != nil {
		return nil
	}
	return suspended
}

// IsMissing reports whether the directory does not exist.
func IsMissing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}
