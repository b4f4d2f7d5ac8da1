// Package unmount does what `runsc umount` does before the rest of the program is
// initialised. gVisor's kernel starts this program a second time for nothing but
// to unmount its /proc, and initialising the packages of a kernel takes longer
// than all else that the second process does.
//
// Go initialises packages in the order of their import paths as soon as what they
// import is initialised, so this one, which imports little, comes before
// all of gVisor's (The Go Programming Language Specification, "Program
// initialization"). In another order it would be slower, and still right.
package unmount

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// done is a variable because it has to be set before main.main begins.
var done = unmount(os.Args)

// Done reports whether this process was started to unmount. It never returns true:
// such a process ends before main.main.
func Done() bool { return done }

// unmount waits for a byte from a descriptor, detaches a mount and exits, if args are the
// arguments of gVisor's umounter:
//
//	/proc/self/exe umount --sync-fd=3 /proc
//
// Anything else is left to gVisor's own command.
func unmount(args []string) bool {
	if len(args) != 4 || args[1] != "umount" {
		return false
	}
	value, found := strings.CutPrefix(args[2], "--sync-fd=")
	fd, err := strconv.Atoi(value)
	if !found || err != nil || fd < 0 || !strings.HasPrefix(args[3], "/") {
		return false
	}
	if err := detach(fd, args[3]); err != nil {
		_, _ = os.Stderr.WriteString("unmounting " + strconv.Quote(args[3]) + ": " + err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
	return true
}

func detach(fd int, path string) error {
	if n, err := read(fd, make([]byte, 1)); err != nil {
		return err
	} else if n != 1 {
		return syscall.EPIPE // the writer has ended
	}
	return syscall.Unmount(path, syscall.MNT_DETACH)
}

// read is like read(2) and repeats it after a signal.
func read(fd int, buffer []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, buffer)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
