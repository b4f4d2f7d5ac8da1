package verb

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/audit"
)

// AuditFlags are the flags with which the log is found.
type AuditFlags struct{ ConfigFlag }

// Find returns the directories of the log and of its keys.
func (f AuditFlags) Find(stderr io.Writer) (system.Directories, error) {
	c, err := f.LoadState(stderr)
	if err != nil {
		return system.Directories{}, err
	}
	return system.FindDirectories(c)
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

// IsMissing reports whether the directory does not exist.
func IsMissing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}
