package runsc

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ocispec"
)

// nobody is the user that runsc makes gVisor's kernel process when root starts it.
const nobody = 65534

// The users that root gives to sandboxes: from a range in which no distribution
// and no container manager allocates (systemd's documentation UIDS-GIDS lists
// who uses what).
const (
	firstUser = 1_900_000_000
	users     = 1 << 26
)

// ownUser derives the sandbox's host user from its random ID. Two sandboxes
// that meet in one are as separate as sandboxes of one user are anyway.
func ownUser(id string) ocispec.Identity {
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	n := uint32(firstUser) + h.Sum32()%users
	return ocispec.Identity{UID: n, GID: n}
}

// identity decides which user of the host the sandbox's file server is. Root
// gives each a user of its own; an ordinary user can only offer itself. Where
// another user could not reach the sandbox's files, root itself must do, which
// is named in a warning.
func (d *Driver) identity(ctx context.Context, spec runner.Spec) (ocispec.Identity, error) {
	if uid := os.Geteuid(); uid != 0 {
		return ocispec.Identity{UID: uint32(uid), GID: uint32(os.Getegid())}, nil
	}
	paths := []string{spec.Image.RootFS, spec.SocketDir}
	for _, m := range spec.Mounts {
		paths = append(paths, m.Source)
	}
	own := filepath.Dir(spec.SocketDir)
	for _, path := range paths {
		closed, err := closedFolder(path, own)
		if err != nil {
			return ocispec.Identity{}, err
		}
		if closed != "" {
			d.warn.Do(func() {
				d.opts.Logger.WarnContext(ctx, "the sandboxes' file servers run as root, because the folder is closed to other users",
					slog.String(telemetry.KeyPath, closed))
			})
			return ocispec.Identity{Root: true}, nil
		}
	}
	host := ocispec.Identity{UID: nobody, GID: nobody}
	if mapped(firstUser + users - 1) {
		host = ownUser(spec.ID)
	}
	if err := os.Chown(own, int(host.UID), int(host.GID)); err != nil {
		return ocispec.Identity{}, fmt.Errorf("giving %q to the sandbox's user: %w", own, err)
	}
	return host, nil
}

// mapped reports whether a user and a group with this number exist in the user
// namespace of Airlock (user_namespaces(7)).
func mapped(id uint64) bool {
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		data, err := os.ReadFile(file)
		if err != nil || !maps(string(data), id) {
			return false
		}
	}
	return true
}

func maps(text string, id uint64) bool {
	for line := range strings.Lines(text) {
		var first, outside, count uint64
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && first <= id && id < first+count {
			return true
		}
	}
	return false
}

// closedFolder returns the first folder on the way to path that other users may
// not pass, or "" if there is none. The folder own is about to be opened.
func closedFolder(path, own string) (string, error) {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if info.Mode()&0o001 == 0 && dir != own {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}
