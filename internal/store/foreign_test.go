package store

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// issue 23: a configuration that another user owns or can write was run with the rights
// of the user who started Airlock in its directory.
func TestCheckOwnerRefusesWhatOthersControl(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	const other = 12345
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) (path string)
		want    string // in the error; empty: none
	}{
		{"an own file", func(t *testing.T, dir string) string { return file(t, dir, "f", 0o644) }, ""},
		{"a file that is not there", func(t *testing.T, dir string) string { return filepath.Join(dir, "none", "f") },
			""},
		{"a file of another user", func(t *testing.T, dir string) string {
			f := file(t, dir, "f", 0o644)
			own(t, f, other)
			return f
		}, "belongs to the user 12345"},
		{"a file that all may write", func(t *testing.T, dir string) string { return file(t, dir, "f", 0o646) },
			"every user"},
		{"a file that its group may write", func(t *testing.T, dir string) string {
			f := file(t, dir, "f", 0o664)
			if err := os.Chown(f, 0, other); err != nil {
				t.Fatal(err)
			}
			return f
		}, "the group 12345"},
		{"a file that a list lets another user write", func(t *testing.T, dir string) string {
			return listed(t, file(t, dir, "f", 0o600), aclUser, 6, other)
		}, "the user 12345, by an access control list"},
		{"a directory that a list lets another group write", func(t *testing.T, dir string) string {
			return file(t, listed(t, directory(t, dir, "d", 0o700), aclGroup, 7, other), "f", 0o600)
		}, "the group 12345"},
		{"a file that a list lets another user read", func(t *testing.T, dir string) string {
			return listed(t, file(t, dir, "f", 0o600), aclUser, 4, other)
		}, ""},
		{"a file that a list lets root write", func(t *testing.T, dir string) string {
			return listed(t, file(t, dir, "f", 0o600), aclUser, 6, 0)
		}, ""},
		{"a directory of another user", func(t *testing.T, dir string) string {
			d := directory(t, dir, "d", 0o755)
			f := file(t, d, "f", 0o644)
			own(t, d, other)
			return f
		}, "belongs to"},
		{"a directory two levels up that all may write", func(t *testing.T, dir string) string {
			d := directory(t, dir, "d", 0o777)
			return file(t, directory(t, d, "e", 0o755), "f", 0o644)
		}, "every user"},
		{"a sticky directory that all may write", func(t *testing.T, dir string) string {
			return file(t, directory(t, dir, "d", 0o777|os.ModeSticky), "f", 0o644)
		}, ""},
		{"a file of another user in a sticky directory", func(t *testing.T, dir string) string {
			f := file(t, directory(t, dir, "d", 0o777|os.ModeSticky), "f", 0o644)
			own(t, f, other)
			return f
		}, "belongs to"},
		{"another user's link to an own file", func(t *testing.T, dir string) string {
			f, link := file(t, dir, "f", 0o644), filepath.Join(dir, "link")
			if err := errors.Join(os.Symlink(f, link), os.Lchown(link, other, other)); err != nil {
				t.Fatal(err)
			}
			return link
		}, "belongs to"},
		{"an own link into another user's directory", func(t *testing.T, dir string) string {
			d, link := directory(t, dir, "d", 0o755), filepath.Join(dir, "link")
			f := file(t, d, "f", 0o644)
			own(t, d, other)
			if err := os.Symlink("d/../d/"+filepath.Base(f), link); err != nil {
				t.Fatal(err)
			}
			return link
		}, "belongs to"},
		{"links in a circle", func(t *testing.T, dir string) string {
			link := filepath.Join(dir, "link")
			if err := os.Symlink(link, link); err != nil {
				t.Fatal(err)
			}
			return link
		}, "too many levels"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := CheckOwner(test.prepare(t, t.TempDir()))
			if test.want == "" && err != nil || test.want != "" &&
				(err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// issue 23: entries of the state directory that others owned or could change were used, and so was a sticky
// directory in which others had made them before.
func TestHomeRefusesWhatOthersControl(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	const other = 12345
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string // in the error; empty: none
	}{
		"own entries": {func(t *testing.T, dir string) {
			file(t, directory(t, dir, "keys", 0o700), "k", 0o600)
			file(t, dir, "state.db", 0o600)
		}, ""},
		"a sticky directory": {func(t *testing.T, dir string) {
			if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
		}, "every user"},
		"an entry of another user": {func(t *testing.T, dir string) {
			own(t, directory(t, dir, "keys", 0o700), other)
		}, "belongs to the user 12345"},
		"an entry that all may change": {func(t *testing.T, dir string) {
			directory(t, dir, "trust", 0o777)
		}, "every user"},
		"a sticky entry": {func(t *testing.T, dir string) {
			directory(t, dir, "approvals", 0o777|os.ModeSticky)
		}, "every user"},
		"a key of another user": {func(t *testing.T, dir string) {
			own(t, file(t, directory(t, dir, "keys", 0o700), "audit-sign.key", 0o600), other)
		}, "belongs to the user 12345"},
		"a key that all may change": {func(t *testing.T, dir string) {
			file(t, directory(t, dir, "keys", 0o700), "audit-sign.key", 0o606)
		}, "every user"},
		"a link to another user's key": {func(t *testing.T, dir string) {
			theirs := file(t, t.TempDir(), "k", 0o600)
			own(t, theirs, other)
			if err := os.Symlink(theirs, filepath.Join(directory(t, dir, "keys", 0o700), "k")); err != nil {
				t.Fatal(err)
			}
		}, "belongs to the user 12345"},
		"a confirmed configuration that a group may change": {func(t *testing.T, dir string) {
			f := file(t, directory(t, dir, "trust", 0o700), "a.json", 0o660)
			if err := os.Chown(f, 0, other); err != nil {
				t.Fatal(err)
			}
		}, "the group 12345"},
		"a question of another user": {func(t *testing.T, dir string) {
			own(t, file(t, directory(t, dir, "approvals", 0o700), "apr_1.json", 0o600), other)
		}, "belongs to the user 12345"},
		"an image of another user": {func(t *testing.T, dir string) {
			own(t, directory(t, directory(t, dir, "images", 0o755), "python", 0o755), other)
		}, "belongs to the user 12345"},
		"a link into another user's directory": {func(t *testing.T, dir string) {
			theirs := directory(t, t.TempDir(), "d", 0o755)
			directory(t, theirs, "images", 0o755)
			own(t, theirs, other)
			if err := os.Symlink(filepath.Join(theirs, "images"), filepath.Join(dir, "images")); err != nil {
				t.Fatal(err)
			}
		}, "belongs to the user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			test.prepare(t, dir)
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(dir, link); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{dir, link} {
				_, err := Home(env(map[string]string{EnvHome: path}))
				if foreign := (*ForeignError)(nil); test.want == "" && err != nil || test.want != "" &&
					(!errors.As(err, &foreign) || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}

// listed adds an entry to the access control list of a file that belongs to root (issue 23).
func listed(t *testing.T, path string, tag, permissions uint16, id uint32) string {
	t.Helper()
	const none = ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, permissions uint16
		id               uint32
	}{{1, 7, none}, {tag, permissions, id}, {aclGroupOwner, 0, none}, {0x10, 7, none}, {0x20, 0, none}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.permissions)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	if tag > aclGroupOwner { // entries are in the order of their tags
		list = slices.Concat(list[:12], list[20:28], list[12:20], list[28:])
	}
	if err := unix.Lsetxattr(path, "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("this file system has no access control lists: %v", err)
	}
	return path
}

// Directories above a user's home belong to the administrator, as ssh assumes.
func TestCheckOwnerStopsAtHome(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	home := directory(t, dir, "home", 0o755)
	f := file(t, home, "f", 0o644)
	if err := (ownership{uid: os.Geteuid(), home: home}).check(f); err != nil {
		t.Errorf("below the home: got %v", err)
	}
	if err := (ownership{uid: os.Geteuid(), home: "/nowhere"}).check(f); err == nil {
		t.Error("below another home: got no error")
	}
}

func file(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func directory(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func own(t *testing.T, path string, id int) {
	t.Helper()
	if err := os.Chown(path, id, id); err != nil {
		t.Fatal(err)
	}
}

// issue 23: a user who can open a lock can hold it, which made all runs of root wait. A lock
// that a former version left open to others is closed to them.
func TestOthersCannotOpenLocks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new", "old"} {
		path := filepath.Join(dir, name)
		if name == "old" {
			file(t, dir, name, 0o644)
		}
		lock, err := TryAcquire(path, Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want mode 0600", name, info.Mode(), err)
		}
	}
	d := directory(t, dir, "d", 0o755)
	held, err := TryHold(d, Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if info, err := os.Stat(d); err != nil || info.Mode().Perm()&0o066 != 0 {
		t.Errorf("got %v, %v, want a directory that others cannot open", info.Mode(), err)
	}
}

// If a symbolic link replaces a lock, the file that it points to must not be locked.
func TestALockIsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, link := file(t, dir, "target", 0o644), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if lock, err := TryAcquire(link, Exclusive); err == nil {
		lock.Release()
		t.Error("got a lock on what a link names")
	}
}
