package verb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A verb that was interrupted reports only that, unless something else failed as well. If the
// machine has run out of a resource, the error has a hint.
func TestErrorsThatAnyVerbMayMeet(t *testing.T) {
	canceled := fmt.Errorf("opening the database: %w", context.Canceled)
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"as it is": {context.Canceled, "airlock: interrupted\n"},
		"wrapped":  {canceled, "airlock: interrupted\n"},
		"joined":   {errors.Join(canceled, fmt.Errorf("closing: %w", canceled)), "airlock: interrupted\n"},
		"beside another error": {errors.Join(canceled, errors.New("the disk is full")),
			"airlock: opening the database: context canceled\nthe disk is full\n"},
		"a full disk": {fmt.Errorf("writing x: %w", syscall.ENOSPC),
			"airlock: writing x: no space left on device\nhint: free some space on that disk, or name another place: " +
				"$AIRLOCK_HOME, audit.path\n"},
		"no files left": {&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE},
			"airlock: open x: too many open files\nhint: raise the number of files that a process may have open: " +
				"ulimit -n, LimitNOFILE\n"},
		"in one with another": {fmt.Errorf("%w: %w", errors.New("the disk is full"), canceled),
			"airlock: the disk is full: opening the database: context canceled\n"},
	} {
		var stderr strings.Builder
		if code := Report(&stderr, test.err); code != ExitFailed || stderr.String() != test.want {
			t.Errorf("%s: got %d, %q, want %d, %q", name, code, stderr.String(), ExitFailed, test.want)
		}
	}
}
