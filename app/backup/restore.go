package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Verify checks a backup completely: the digest of each file, the structure of the databases and
// the audit log. It unpacks the backup into a directory below scratch, which it removes.
func Verify(ctx context.Context, r io.Reader, scratch string) (*Manifest, audit.Report, error) {
	dir, err := os.MkdirTemp(scratch, "airlock-verify-*")
	if err != nil {
		return nil, audit.Report{}, fmt.Errorf("verifying a backup: %w", err)
	}
	m, report, err := unpack(ctx, r, Places{Home: dir, Audit: store.Audit(dir), Keys: store.Keys(dir)})
	return m, report, errors.Join(err, os.RemoveAll(dir))
}

// unpack writes the files of a backup to empty directories and checks them.
func unpack(ctx context.Context, r io.Reader, to Places) (*Manifest, audit.Report, error) {
	var databases []string
	m, err := read(r, func(name string, content io.Reader) error {
		file, err := to.path(name)
		if err != nil {
			return damaged("%s", err)
		}
		if strings.HasSuffix(file, databaseExt) {
			databases = append(databases, file)
		}
		if err := errors.Join(ctx.Err(), os.MkdirAll(filepath.Dir(file), 0o700)); err != nil {
			return err
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return nil, audit.Report{}, err
	}
	for _, name := range databases {
		if err := database.Check(ctx, name); err != nil {
			return nil, audit.Report{}, damaged("%s", err)
		}
	}
	report, err := audit.Verify(to.Audit, &audit.VerifyOptions{Keys: to.Keys, Partial: true})
	switch {
	case errors.Is(err, audit.ErrNoLog):
		err = nil
	case err == nil && !report.OK():
		f := report.Findings[0]
		err = damaged("the audit log in it: %s: %s", f.File, f.Text)
	}
	return m, report, err
}

// path returns the path of an entry of a backup.
func (p Places) path(name string) (string, error) {
	rest, ok := strings.CutPrefix(name, homeParts)
	if !ok {
		return audit.PartPath(p.Audit, p.Keys, name)
	}
	first, _, _ := strings.Cut(rest, "/")
	if store.IsRebuilt(first) {
		return "", fmt.Errorf("%q is not part of a backup", name)
	}
	return filepath.Join(p.Home, filepath.FromSlash(rest)), nil
}

// NotEmptyError reports that there is state in the directory to which a backup is to be restored.
type NotEmptyError struct{ Path string }

// Error is one sentence.
func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%q has state already: a backup is restored to an empty directory", e.Path)
}

// Restore unpacks a backup in a directory below the places, checks it, and then moves its parts to
// them: the audit log first and the keys last, because Airlock does not start with a log and
// without its keys. So a restore that is killed leaves no state or one that does not start. Images
// and caches in the state directory are kept.
func Restore(ctx context.Context, r io.Reader, to Places) (*Manifest, audit.Report, error) {
	var undo cleanup.Stack
	defer undo.Run() // the next restore removes what cannot be removed now
	fail := func(err error) (*Manifest, audit.Report, error) {
		return nil, audit.Report{}, fmt.Errorf("restoring: %w", err)
	}
	if err := errors.Join(checkEmpty(to.Home), checkEmpty(to.Audit)); err != nil {
		return fail(err)
	}
	staging, err := stagingIn(to.Home, &undo)
	if err != nil {
		return fail(err)
	}
	staged := Places{Home: staging, Audit: store.Audit(staging), Keys: store.Keys(staging)}
	outside := to.Audit != store.Audit(to.Home)
	if outside { // it may be on another file system
		if staged.Audit, err = stagingIn(to.Audit, &undo); err != nil {
			return fail(err)
		}
	}
	m, report, err := unpack(ctx, r, staged)
	if err != nil {
		return fail(err)
	}
	if err := renameEvidence(staged, to); err != nil {
		return fail(err)
	}
	if outside {
		if err := move(staged.Audit, to.Audit); err != nil {
			return fail(err)
		}
	}
	if err := move(staging, to.Home); err != nil {
		return fail(err)
	}
	return m, report, nil
}

// renameEvidence gives the files of the log beside the staged keys the names that they have at the
// final places.
func renameEvidence(staged, final Places) error {
	return audit.EachEvidence(staged.Audit, staged.Keys, func(name, path string) error {
		is, err := audit.PartPath(final.Audit, final.Keys, name)
		if err != nil {
			return err
		}
		return os.Rename(path, filepath.Join(staged.Keys, filepath.Base(is)))
	})
}

// checkEmpty returns an error if a directory has entries that are part of a backup.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !store.IsRebuilt(e.Name()) }) {
		return &NotEmptyError{dir}
	}
	return nil
}

// move moves the entries of a directory to another one on the same file system, in the order of rank.
func move(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) { // a backup without a log
		return nil
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return rank(a) - rank(b) })
	if err := errors.Join(store.SyncFileSystem(from), os.MkdirAll(to, 0o700)); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Rename(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return store.SyncFileSystem(to)
}

func rank(e fs.DirEntry) int {
	switch e.Name() {
	case "audit":
		return -1
	case "keys":
		return 1
	}
	return 0
}
