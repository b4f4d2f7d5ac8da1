package contained

import (
	"fmt"
	"os"
	"syscall"

	"github.com/airlock-mcp/airlock/runner"
)

// ownerOf returns the user of a server's processes in its sandbox: the owner of the first writable mount, or else of
// the first mount, so that it can read private files there, and what it writes belongs to their owner. It returns the
// zero value, a user without any files, if nothing is mounted or root owns the mount.
func ownerOf(mounts []runner.Mount) (runner.User, error) {
	var user runner.User
	for _, writable := range []bool{true, false} {
		for _, m := range mounts {
			if m.Writable != writable || user != (runner.User{}) {
				continue
			}
			info, err := os.Stat(m.Source)
			if err != nil {
				return user, err
			}
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok || !info.IsDir() {
				return user, fmt.Errorf("%q is not a directory", m.Source)
			}
			if stat.Uid != 0 && stat.Gid != 0 {
				user = runner.User{UID: stat.Uid, GID: stat.Gid}
			} else if writable {
				return user, fmt.Errorf("the writable directory %q belongs to root: give it to the user whose files "+
					"it has",
					m.Source)
			}
		}
	}
	return user, nil
}
