package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// archive writes the entries into a compressed tar file, below one directory.
func (r *release) archive(name string, entries []entry) (err error) {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed := gzip.NewWriter(f)
	packed.ModTime = r.time
	w := tar.NewWriter(packed)
	top := fmt.Sprintf("airlock-%s", r.version)
	made := map[string]bool{}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.archive, b.archive) })
	for _, e := range entries {
		if e.archive == "" {
			continue
		}
		full := path.Join(top, e.archive)
		if dir := path.Dir(full); !made[dir] {
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: r.time,
				Format: tar.FormatPAX}); err != nil {
				return err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: full, Mode: int64(e.mode),
			Size: int64(len(e.content)), ModTime: r.time, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := w.Write(e.content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}
