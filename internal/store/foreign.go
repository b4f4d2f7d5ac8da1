package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// A ForeignError describes a file or directory that another user owns or can change.
// Airlock takes no commands from it and keeps no state in it.
type ForeignError struct {
	Path    string // the path to check
	Through string // the file, directory or link that another user controls
	Reason  string // a sentence about Through
	Advice  string // the command that corrects it
}

// Error is one sentence.
func (e *ForeignError) Error() string {
	if e.Path == e.Through {
		return fmt.Sprintf("%q is not used: it %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%q is not used: %q %s", e.Path, e.Through, e.Reason)
}

// Hint returns the command to type.
func (e *ForeignError) Hint() string { return e.Advice }

// IsWritable reports whether this process's user owns the file at path or a directory
// above it, or may write to one of them, so that it can be changed or replaced.
func IsWritable(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	for at := real; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return true
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		const write = 2 // W_OK of access(2)
		sticky := at != real && info.Mode()&fs.ModeSticky != 0
		if !ok || int(stat.Uid) == os.Geteuid() || !sticky && syscall.Access(at, write) == nil {
			return true
		}
		if at == "/" {
			return false
		}
	}
}

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// CheckOwner returns a *ForeignError if a user other than root and the user of this
// process owns path, or can change or replace it: the file itself, each directory above
// it up to the root or the user's home directory, and each symbolic link on the way.
// A directory that all may write to counts as safe if it is sticky, because then only
// the owner of an entry can replace it. Missing files and directories are not checked.
func CheckOwner(path string) error {
	return ownership{uid: os.Geteuid(), home: os.Getenv(envUserHome)}.check(path)
}

// authoritative are the directories of the state directory whose entries decide what may happen, and the code that
// runs.
var authoritative = []func(home string) string{Keys, Trust, Approvals, SignIns, Daemon, Images, Wrappers}

// checkState is CheckOwner for the state directory, each of its entries, and the entries of authoritative directories.
// Nobody else may be able to add an entry, even if the directory is sticky: Airlock would use it as its own.
func checkState(dir string) error {
	o := ownership{uid: os.Geteuid(), home: os.Getenv(envUserHome)}
	if err := o.check(dir); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checking who can change the state directory: %w", err)
	}
	o.evenSticky = true
	if err := o.own(real); err != nil {
		return err
	}
	for _, within := range authoritative {
		if err := o.entries(within(real)); err != nil {
			return err
		}
	}
	return o.entries(real)
}

// entries checks each entry of a directory. Missing directories and files are not checked.
func (o ownership) entries(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("checking who can change the state directory: %w", err)
	}
	for _, entry := range entries {
		if err := o.own(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// own checks one path, and if it is a link, all on the way to its target.
func (o ownership) own(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a temporary file was removed meanwhile
		return nil
	case err == nil && info.Mode().Type() == fs.ModeSymlink:
		return CheckOwner(path)
	case err == nil:
		err = o.one(path, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ownership checks files for one user.
type ownership struct {
	uid        int
	home       string // directories above it are not checked; "" if unknown
	evenSticky bool   // sticky directories are no exception
}

func (o ownership) check(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("resolving %q: %w", path, err)
	}
	at, links := "/", 0
	if err := o.one(abs, at); err != nil {
		return err
	}
	rest := strings.Split(abs, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if err := o.one(abs, next); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return fmt.Errorf("resolving %q: %w", path, syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}

// one checks one file, directory or link on the way to path.
func (o ownership) one(path, at string) error {
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if o.isAboveHome(at) {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	owner, mode := int(stat.Uid), info.Mode()
	foreign := &ForeignError{Path: path, Through: at}
	switch {
	case owner != o.uid && owner != 0:
		foreign.Reason = fmt.Sprintf("belongs to the user %d", owner)
		foreign.Advice = "use a file and directories that belong to you or to root"
	case mode.Type() == fs.ModeSymlink: // its mode does not matter
		return nil
	case mode.IsDir() && mode&fs.ModeSticky != 0 && !o.evenSticky:
		return nil
	case mode.Perm()&0o002 != 0:
		foreign.Reason = "can be changed by every user"
		foreign.Advice = fmt.Sprintf("chmod o-w %s", visible.Word(at))
	case mode.Perm()&0o020 != 0:
		other, err := o.otherWriter(at, stat.Gid)
		if err != nil || other == "" {
			return err
		}
		foreign.Reason = "can be changed by " + other
		// It also changes the mask of an access control list.
		foreign.Advice = fmt.Sprintf("chmod g-w %s", visible.Word(at))
	default:
		return nil
	}
	return foreign
}

// otherWriter describes a user or group that may write to a file by its group's permissions or its access control list,
// apart from root, the user, and groups that have only these. It returns "" if nobody else may write.
func (o ownership) otherWriter(at string, gid uint32) (string, error) {
	w, err := writersOf(at, gid)
	if err != nil {
		return "", err
	}
	for _, uid := range w.users {
		if uid != 0 && int(uid) != o.uid {
			return fmt.Sprintf("the user %d, by an access control list", uid), nil
		}
	}
	for _, gid := range w.groups {
		if !o.isPrivate(gid) {
			return fmt.Sprintf("the group %d", gid), nil
		}
	}
	return "", nil
}

// isAboveHome reports whether at is a directory above the user's home directory.
func (o ownership) isAboveHome(at string) bool {
	home := filepath.Clean(o.home)
	return filepath.IsAbs(o.home) && home != at && (at == "/" && home != "/" || strings.HasPrefix(home, at+"/"))
}

// isPrivate reports whether nobody but root and the user is in a group, as in the group
// of the same name that many systems make for each user. It reads the local files only:
// a group that they do not list is not private.
func (o ownership) isPrivate(gid uint32) bool {
	id, own := fmt.Sprint(gid), []string{"root"}
	users := records("/etc/passwd", 4)
	for _, u := range users {
		if u[2] == fmt.Sprint(o.uid) {
			own = append(own, u[0])
		}
	}
	for _, u := range users {
		if u[3] == id && !slices.Contains(own, u[0]) {
			return false
		}
	}
	listed := false
	for _, g := range records("/etc/group", 4) {
		if g[2] != id {
			continue
		}
		listed = true
		for member := range strings.SplitSeq(g[3], ",") {
			if member != "" && !slices.Contains(own, member) {
				return false
			}
		}
	}
	return listed && len(users) > 0
}

// records returns the lines of a file that have at least so many fields (passwd(5), group(5)).
func records(path string, fields int) (all [][]string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if record := strings.Split(strings.TrimSpace(line), ":"); len(record) >= fields {
			all = append(all, record)
		}
	}
	return all
}
