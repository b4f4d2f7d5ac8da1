package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// Bounds on what Unpack takes, well above the largest image.
const (
	maxEntries = 200_000
	maxBytes   = 4 << 30 // content of all files together
)

// Unpack writes the entries of the tar archive r for which keep returns true below the
// existing directory dir. A nil keep selects all entries. Later entries replace earlier ones.
// Names and links in the archive cannot cause writes outside of dir. Device nodes, sockets and
// pipes are refused. Modes become those of Write, so no file is set-user-ID or writable by
// others. After an error dir contains a part of the archive.
func Unpack(ctx context.Context, r io.Reader, dir string, keep func(name string) bool) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpacking to %q: %w", dir, err)
	}
	undo.Add(root.Close)
	u := &unpacker{root: root, archive: tar.NewReader(r), left: maxBytes, limit: maxBytes}
	for entries := 0; ; entries++ {
		header, err := u.archive.Next()
		if errors.Is(err, io.EOF) {
			return u.setDirectoryTimes()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && entries == maxEntries {
			err = fmt.Errorf("the archive has more than %d entries", maxEntries)
		}
		if err == nil {
			err = u.entry(header, keep)
		}
		if err != nil {
			return fmt.Errorf("unpacking to %q: %w", dir, err)
		}
	}
}

type unpacker struct {
	root        *os.Root
	archive     *tar.Reader
	left        int64    // bytes that may still be written
	limit       int64    // bytes that might at first
	directories []string // whose times are set last, because content changes them
}

func (u *unpacker) entry(header *tar.Header, keep func(string) bool) error {
	name, err := cleanName(header.Name)
	if err != nil {
		return err
	}
	if name == "." || (keep != nil && !keep(name)) {
		return nil
	}
	if err := u.parents(name); err != nil {
		return fmt.Errorf("entry %q: %w", name, err)
	}
	if err := u.write(name, header); err != nil {
		return fmt.Errorf("entry %q: %w", name, err)
	}
	return nil
}

func (u *unpacker) write(name string, header *tar.Header) error {
	if header.Typeflag == tar.TypeDir {
		return u.directory(name)
	}
	if err := u.removeOld(name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return u.file(name, header)
	case tar.TypeSymlink:
		return u.root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		target, err := cleanName(header.Linkname)
		if err != nil {
			return err
		}
		return u.hardLink(target, name)
	}
	return fmt.Errorf("type %q is neither directory, file nor link", header.Typeflag)
}

// parents makes the directories above name that the archive does not mention.
func (u *unpacker) parents(name string) error {
	parent := path.Dir(name)
	if parent == "." {
		return nil
	}
	if _, err := u.root.Stat(parent); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := u.parents(parent); err != nil {
		return err
	}
	return u.directory(parent)
}

func (u *unpacker) directory(name string) error {
	info, err := u.root.Lstat(name)
	if err == nil && !info.IsDir() {
		// A directory in the place of a link, as in Debian's merged /usr, means
		// the directory that the link leads to.
		if info, err = u.root.Stat(name); err == nil && !info.IsDir() {
			return errors.New("a directory would replace a file")
		}
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = u.root.Mkdir(name, 0o755)
	}
	if err != nil {
		return err
	}
	u.directories = append(u.directories, name)
	return u.root.Chmod(name, 0o755) // independent of the umask
}

// removeOld removes a file or link that an entry replaces.
func (u *unpacker) removeOld(name string) error {
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (u *unpacker) file(name string, header *tar.Header) error {
	if header.Size > u.left {
		return u.full()
	}
	return u.content(name, u.archive, header.FileInfo().Mode())
}

func (u *unpacker) full() error { return fmt.Errorf("the archive holds more than %d bytes", u.limit) }

// content writes a new file.
func (u *unpacker) content(name string, from io.Reader, mode fs.FileMode) error {
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size, err := io.Copy(file, from)
	if u.left -= size; err == nil && u.left < 0 {
		err = u.full()
	}
	if err = errors.Join(err, file.Chmod(plainMode(mode)), file.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, Time(), Time())
}

// hardLink links to a regular file only: a link to a link would be followed at
// another place than the one that was checked.
func (u *unpacker) hardLink(target, name string) error {
	info, err := u.root.Lstat(target)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("its hard link's target %q is not a regular file", target)
	}
	return u.root.Link(target, name)
}

func (u *unpacker) setDirectoryTimes() error {
	for _, name := range u.directories {
		if err := u.root.Chtimes(name, Time(), Time()); err != nil {
			return fmt.Errorf("setting the time of directory %q: %w", name, err)
		}
	}
	return nil
}

// Under reports whether name equals one of the given paths or is below one.
func Under(name string, paths ...string) bool {
	for _, p := range paths {
		if name == p || strings.HasPrefix(name, p+"/") {
			return true
		}
	}
	return false
}
