package approval

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// groupsRoot is the mount point of the kernel's control groups.
const groupsRoot = "/sys/fs/cgroup"

// fixedGroups returns the lines of /proc/PID/cgroup (cgroups(7)) whose group this user cannot move
// a process into, so that membership proves who started a process. Groups below user@1000.service
// belong to the user, and for root no group is fixed.
func fixedGroups(lines string) string {
	var fixed strings.Builder
	for line := range strings.Lines(lines) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if ok && path != "/" && os.Geteuid() != 0 && isFixed(controllers, path) {
			fixed.WriteString(line)
		}
	}
	return fixed.String()
}

// isFixed reports whether a group exists and is closed to this user, wherever its hierarchy is
// mounted.
func isFixed(controllers, path string) bool {
	mounts := []string{groupsRoot, filepath.Join(groupsRoot, "unified")}
	if controllers != "" {
		mounts = []string{filepath.Join(groupsRoot, strings.TrimPrefix(controllers, "name="))}
	}
	found := false
	for _, mount := range mounts {
		err := unix.Access(filepath.Join(mount, path, "cgroup.procs"), unix.W_OK)
		if err == nil {
			return false
		}
		found = found || !errors.Is(err, fs.ErrNotExist)
	}
	return found
}

// terminalPrograms matches programs that show a terminal in a window, by their names in the kernel,
// which are cut to 15 characters.
var terminalPrograms = lazyregexp.New(
	`^(gnome-terminal-|kgx|ptyxis.*|konsole|yakuake|xfce4-terminal|mate-terminal|lxterminal|qterminal|` +
		`deepin-terminal|io.elementary.t|terminator|tilix|guake|tilda|terminology|x?term|u?xterm|u?rxvt.*|st|foot|` +
		`footclient|kitty|alacritty|wezterm-gui|ghostty|contour|cool-retro-term)$`)

// isOfRoot reports whether a file belongs to root and cannot be changed by other users.
func isOfRoot(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && info.Mode().Perm()&0o022 == 0
}
