// Package layer turns a directory into a reproducible tar archive and such an
// archive, even a hostile one, back into a directory.
//
// A layer follows the OCI Image Format Specification, "Image Layer Filesystem
// Changeset", and holds only directories, regular files and symbolic links. Every
// owner is root, every time is Epoch, and modes are reduced to what a read-only
// root file system needs, so that equal trees give equal bytes on any machine.
package layer

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Epoch is the modification time of everything in an image, in seconds since
// 1970. It follows SOURCE_DATE_EPOCH of reproducible-builds.org but is fixed.
const Epoch = 1767225600 // 2026-01-01T00:00:00Z

// Time is Epoch as a time.
func Time() time.Time { return time.Unix(Epoch, 0).UTC() }

// whiteout starts the name of an entry that deletes another one in a layer below.
const whiteout = ".wh."

// Write writes the tree below dir, without dir itself, as a layer to w. Names are in lexical
// order within each directory. Write returns an error for anything other than a directory, a
// regular file or a symbolic link.
func Write(ctx context.Context, w io.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	defer root.Close()
	archive := tar.NewWriter(w)
	walk := func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return writeEntry(archive, root, name, entry)
	}
	if err := fs.WalkDir(root.FS(), ".", walk); err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	return nil
}

func writeEntry(archive *tar.Writer, root *os.Root, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, ModTime: Time(), Mode: int64(plainMode(info.Mode()))}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return archive.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = root.Readlink(name); err != nil {
			return err
		}
		return archive.WriteHeader(header)
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
		return writeContent(archive, root, name, header)
	}
	return fmt.Errorf("%q is neither directory, file nor symbolic link", name)
}

func writeContent(archive *tar.Writer, root *os.Root, name string, header *tar.Header) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// plainMode reduces a mode to what an image may have: readable by all, writable
// by root, executable or not, and never setuid, setgid or sticky.
func plainMode(mode fs.FileMode) fs.FileMode {
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0o777
	case mode.IsDir() || mode&0o111 != 0:
		return 0o755
	}
	return 0o644
}

// cleanName returns an archive's name for an entry in the form that os.Root and
// io/fs use, or an error when it does not stay inside the root.
func cleanName(name string) (string, error) {
	cleaned := path.Clean(strings.TrimPrefix(name, "/"))
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(cleaned) {
		return "", fmt.Errorf("entry %.200q leaves the root", name)
	}
	if strings.HasPrefix(path.Base(cleaned), whiteout) {
		return "", fmt.Errorf("entry %.200q deletes from another layer, which no layer of Airlock does", name)
	}
	return cleaned, nil
}
