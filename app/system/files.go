package system

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fewestFiles is how many files a process must be able to have open for Airlock to work:
// gVisor takes descriptors from 256 on for the streams of what it runs, and a daemon has some
// dozens for its state, its servers and its sandboxes.
const fewestFiles = 512

// checkFiles refuses to begin what would fail in the middle for want of descriptors. Go
// has raised the limit as far as it goes when the process began.
func checkFiles() error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Max >= fewestFiles {
		return nil // what cannot be read is not known to be too low
	}
	return &SetupError{
		fmt.Errorf("a process may have %d files open here, and sandboxes need %d", files.Max, fewestFiles),
		"raise the limit: ulimit -Hn, LimitNOFILE in a unit of systemd",
	}
}
