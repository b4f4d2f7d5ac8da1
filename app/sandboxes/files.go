package sandboxes

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/setup"
)

// fewestFiles is how many files Airlock must be able to have open. gVisor uses descriptors from 256
// on for the streams of the programs that it runs, and a daemon needs some dozens for its state,
// its servers and its sandboxes.
const fewestFiles = 512

// CheckFiles returns an error if the limit on open files is so low that Airlock would fail later.
// It checks the hard limit, because Go raises the soft limit to it when the process starts.
func CheckFiles() error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Max >= fewestFiles {
		return nil // an unknown limit may be high enough
	}
	return &setup.Error{
		Err:    fmt.Errorf("a process may have %d files open here, and sandboxes need %d", files.Max, fewestFiles),
		Advice: "raise the limit: ulimit -Hn, LimitNOFILE in a unit of systemd",
	}
}
