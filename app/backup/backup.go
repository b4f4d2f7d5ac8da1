// Package backup writes the state of Airlock to one file while it is in use, checks such a file,
// and restores the state from it. See docs/operations.md.
package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	format       = "airlock-backup/1"
	manifestName = "manifest.json" // the last entry
	homeParts    = "home/"         // entries of the state directory; those of the log are named by package audit
	databaseExt  = ".db"
	// gzipTop are the bytes with which Write begins: gzip's checksum does not cover them.
	gzipTop = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
)

// Places are the directories that a backup is of.
type Places struct {
	Home  string // the state directory
	Audit string // the audit log
	Keys  string // the keys, in the state directory
}

// Manifest describes the content of a backup. It is the last entry, so a backup without one is
// incomplete.
type Manifest struct {
	Format  string `json:"format"`
	Version string `json:"version"` // of the Airlock that made it
	Created string `json:"created"` // RFC 3339
	Home    string `json:"home"`
	Files   []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Size returns the size of all files together.
func (m *Manifest) Size() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// Write writes a backup of the state to w. Other processes may use the state meanwhile. Databases
// are copied first and the audit log last: the log is written before an act, so it has a record of
// everything that the rest of the backup knows.
func Write(ctx context.Context, w io.Writer, from Places, version string) (*Manifest, error) {
	var undo cleanup.Stack
	defer undo.Run() // the next backup removes what cannot be removed now
	staging, err := stagingIn(from.Home, &undo)
	if err != nil {
		return nil, fmt.Errorf("backing up: %w", err)
	}
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	b := &writer{from: from, staging: staging, to: tar.NewWriter(compressed), manifest: Manifest{
		Format: format, Version: version, Created: time.Now().UTC().Format(time.RFC3339), Home: from.Home,
		Files: []File{},
	}}
	if err := b.write(ctx); err != nil {
		return nil, fmt.Errorf("backing up: %w", err)
	}
	if err := errors.Join(b.to.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("backing up: %w", err)
	}
	return &b.manifest, nil
}

// stagingIn returns the empty staging directory in dir, which no other process uses until undo runs.
func stagingIn(dir string, undo *cleanup.Stack) (string, error) {
	staging := store.Staging(dir)
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return "", err
	}
	lock, err := store.TryHold(staging, store.Exclusive)
	if err != nil {
		return "", fmt.Errorf("another backup is under way: %w", err)
	}
	undo.Add(lock.Release)
	undo.Add(func() error { return removeContent(staging) })
	return staging, removeContent(staging) // of a process that was killed
}

func removeContent(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

type writer struct {
	from     Places
	staging  string
	to       *tar.Writer
	manifest Manifest
}

func (b *writer) write(ctx context.Context) error {
	found, err := b.find()
	if err != nil {
		return err
	}
	for _, name := range found.databases {
		if err := b.database(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(found.others, found.keys) { // after what is encrypted with them
		if err := b.file(ctx, b.inHome(name), name); err != nil {
			return err
		}
	}
	parts, err := audit.Parts(b.from.Audit, b.from.Keys)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if part.Path == "" {
			err = b.entry(part.Name, bytes.NewReader(part.Content), int64(len(part.Content)))
		} else {
			err = b.part(ctx, part.Name, part.Path, part.Size)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(b.manifest, "", " ")
	if err != nil {
		return err
	}
	files := b.manifest.Files
	err = b.entry(manifestName, bytes.NewReader(text), int64(len(text)))
	b.manifest.Files = files
	return err
}

// content are the files of a state directory.
type content struct{ databases, others, keys []string }

// find lists the files of the state directory, except those that are not part of a backup and
// those of the audit log.
func (b *writer) find() (c content, err error) {
	err = filepath.WalkDir(b.from.Home, func(name string, entry fs.DirEntry, err error) error {
		isKey := filepath.Dir(name) == b.from.Keys
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return err
		case filepath.Dir(name) == b.from.Home && store.IsRebuilt(entry.Name()), name == b.from.Audit,
			isKey && audit.IsEvidence(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
		case entry.Type()&fs.ModeSocket != 0:
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is not a regular file: move it away", name)
		case strings.HasSuffix(name, databaseExt):
			c.databases = append(c.databases, name)
		case strings.HasSuffix(name, databaseExt+"-wal"), strings.HasSuffix(name, databaseExt+"-shm"):
		case isKey:
			c.keys = append(c.keys, name)
		default:
			c.others = append(c.others, name)
		}
		return nil
	})
	return c, err
}

// database adds one consistent state of a database.
func (b *writer) database(ctx context.Context, name string) error {
	copied := filepath.Join(b.staging, "copy"+databaseExt)
	err := database.Copy(ctx, name, copied)
	if err == nil {
		err = b.file(ctx, b.inHome(name), copied)
	}
	return errors.Join(err, os.RemoveAll(copied))
}

func (b *writer) inHome(name string) string {
	relative, _ := filepath.Rel(b.from.Home, name) // name was found below it
	return homeParts + filepath.ToSlash(relative)
}

// file adds a file as long as it is now. A file that no longer exists is not added.
func (b *writer) file(ctx context.Context, as, name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.part(ctx, as, name, info.Size())
}

// part adds the first size bytes of a file.
func (b *writer) part(ctx context.Context, as, name string, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := store.Open(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(as, homeParts) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(b.entry(as, f, size), f.Close())
}

func (b *writer) entry(as string, content io.Reader, size int64) error {
	if err := b.to.WriteHeader(&tar.Header{Name: as, Mode: 0o600, Size: size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(b.to, sum), content, size); err != nil {
		return fmt.Errorf("%q was changed while it was read: %w", as, err)
	}
	b.manifest.Files = append(b.manifest.Files, File{as, size, digest(sum)})
	return nil
}

func digest(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// DamagedError reports a backup that is incomplete or was changed.
type DamagedError struct{ Problem string }

// Error is one sentence.
func (e *DamagedError) Error() string { return "the backup is damaged: " + e.Problem }

func damaged(text string, values ...any) error { return &DamagedError{fmt.Sprintf(text, values...)} }

// read reads a whole backup and calls put with each file, whose content is only proven when read
// returns without an error.
func read(r io.Reader, put func(name string, content io.Reader) error) (*Manifest, error) {
	buffered := bufio.NewReader(r)
	top, err := buffered.Peek(len(gzipTop))
	if err != nil || string(top) != gzipTop {
		return nil, damaged("it does not begin as one")
	}
	compressed, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, damaged("%s", err)
	}
	compressed.Multistream(false)
	entries, found := tar.NewReader(compressed), map[string]File{}
	for {
		header, err := entries.Next()
		if err != nil {
			return nil, damaged("it has no manifest, so a part is missing: %s", err)
		}
		name := header.Name
		switch _, again := found[name]; {
		case name == manifestName:
			m, err := checkManifest(entries, compressed, found)
			if _, after := buffered.ReadByte(); err == nil && !errors.Is(after, io.EOF) {
				err = damaged("something follows it")
			}
			return m, err
		case header.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || path.Clean(name) != name || again:
			return nil, damaged("%q is not an entry that Airlock writes", name)
		}
		sum := sha256.New()
		content := io.TeeReader(soundReader{entries}, sum)
		if err = put(name, content); err == nil {
			_, err = io.Copy(io.Discard, content)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		found[name] = File{name, header.Size, digest(sum)}
	}
}

// soundReader returns a *DamagedError for whatever its reader cannot read.
type soundReader struct{ io.Reader }

func (r soundReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged("%s", err)
	}
	return n, err
}

func checkManifest(entries *tar.Reader, compressed io.Reader, found map[string]File) (*Manifest, error) {
	var m Manifest
	text, err := io.ReadAll(entries)
	if err == nil {
		err = strictjson.UnmarshalOpen(text, &m)
	}
	if err != nil {
		return nil, damaged("its manifest: %s", err)
	}
	if m.Format != format {
		return nil, damaged("its format is %q; this Airlock reads %q", m.Format, format)
	}
	if _, err := entries.Next(); !errors.Is(err, io.EOF) {
		return nil, damaged("something follows its manifest")
	}
	if _, err := io.Copy(io.Discard, compressed); err != nil { // the checksum of all bytes
		return nil, damaged("%s", err)
	}
	for _, f := range m.Files {
		if found[f.Path] != f {
			return nil, damaged("%q is missing or was changed", f.Path)
		}
		delete(found, f.Path)
	}
	for name := range found {
		return nil, damaged("%q is not in its manifest", name)
	}
	return &m, nil
}
