package layer

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// Zip is a place that zip archives are unpacked to, with bounds on all of them
// together. It is used by one goroutine at a time.
type Zip struct {
	// Replaced are the paths of files that an archive had, and a later one had
	// with other content, which is the one that counts.
	Replaced []string

	unpacker unpacker
	dir      string
	entries  int // that may still come
	from     map[string]uint32
}

// NewZip prepares to unpack archives below the existing directory dir, of at most so
// many bytes of content. The caller closes it.
func NewZip(dir string, bytes int64) (*Zip, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("unpacking to %q: %w", dir, err)
	}
	return &Zip{unpacker: unpacker{root: root, left: bytes, limit: bytes}, dir: dir, entries: maxEntries,
		from: map[string]uint32{}}, nil
}

// Close ends the unpacking and gives directories their times.
func (z *Zip) Close() error {
	return errors.Join(z.unpacker.setDirectoryTimes(), z.unpacker.root.Close())
}

// Unpack writes the files of the zip archive at path. target returns the destination of a
// file, or "" to skip it. Names in the archive cannot cause writes outside of the directory.
// Anything other than directories and regular files is refused. Modes become those of Write.
// After an error the directory contains a part of the archive.
func (z *Zip) Unpack(ctx context.Context, path string, target func(name string) string) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	archive, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("unpacking to %q: %w", z.dir, err)
	}
	undo.Add(archive.Close)
	for _, file := range archive.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := z.entry(file, target); err != nil {
			return fmt.Errorf("unpacking to %q: %w", z.dir, err)
		}
	}
	return nil
}

func (z *Zip) entry(file *zip.File, target func(string) string) error {
	if z.entries--; z.entries < 0 {
		return fmt.Errorf("the archives have more than %d entries", maxEntries)
	}
	if strings.Contains(file.Name, `\`) || strings.HasPrefix(file.Name, "/") {
		return fmt.Errorf("entry %.200q is not a relative path with slashes", file.Name)
	}
	name, err := cleanName(file.Name)
	if err != nil {
		return err
	}
	mode := file.Mode()
	if mode.IsDir() {
		return nil // directories come with their files
	}
	if !mode.IsRegular() {
		return fmt.Errorf("entry %.200q is neither directory nor regular file", name)
	}
	if name = target(name); name == "" {
		return nil
	}
	if err := z.unpacker.parents(name); err != nil {
		return fmt.Errorf("entry %q: %w", name, err)
	}
	if err := z.write(name, file, mode); err != nil {
		return fmt.Errorf("entry %q: %w", name, err)
	}
	return nil
}

func (z *Zip) write(name string, file *zip.File, mode fs.FileMode) error {
	if sum, ok := z.from[name]; ok && sum != file.CRC32 {
		z.Replaced = append(z.Replaced, name)
	}
	z.from[name] = file.CRC32
	if err := z.unpacker.removeOld(name); err != nil {
		return err
	}
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	// The size that the archive claims is not believed.
	limited := io.LimitReader(content, z.unpacker.left+1)
	return z.unpacker.content(name, limited, mode)
}
