package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// member is one file of a tar file.
type member struct {
	name    string // its path, without a slash in front
	link    string // target of a symbolic link; empty for a file
	mode    os.FileMode
	content []byte
}

// archive writes the entries into a compressed tar file, below one directory.
func (r *release) archive(name string, entries []entry) error {
	top := fmt.Sprintf("airlock-%s", r.version)
	var members []member
	for _, e := range entries {
		if e.archive != "" {
			members = append(members, member{path.Join(top, e.archive), "", e.mode, e.content})
		}
	}
	return r.tar(filepath.Join(r.out, name), members, nil)
}

// tar makes a compressed tar file with the members, sorted, and their directories, except those that exist.
func (r *release) tar(name string, members []member, exist []string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed := gzip.NewWriter(f)
	packed.ModTime = r.time
	w := tar.NewWriter(packed)
	made := map[string]bool{".": true}
	for _, dir := range exist {
		made[dir] = true
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, m := range members {
		if err := r.directory(w, path.Dir(m.name), made); err != nil {
			return err
		}
		header := r.header(tar.TypeReg, m.name, int64(m.mode))
		header.Size = int64(len(m.content))
		if m.link != "" {
			header = r.header(tar.TypeSymlink, m.name, 0o777)
			header.Linkname = m.link
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(m.content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

// directory writes a directory that is not made yet, after those around it.
func (r *release) directory(w *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := r.directory(w, path.Dir(dir), made); err != nil {
		return err
	}
	return w.WriteHeader(r.header(tar.TypeDir, dir+"/", 0o755))
}

// header is that of an empty file of root with the time of the release.
func (r *release) header(kind byte, name string, mode int64) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: mode, ModTime: r.time, Format: tar.FormatPAX}
}

// copyFile writes the content of a file.
func copyFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
