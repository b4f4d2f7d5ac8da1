package approval

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Open questions are files in one directory that only its owner can use, so that
// other processes of the owner can show them. Answers are no files: they are
// given to the process that asks, through its socket in the same directory.
// Sandboxes see nothing of it.
const (
	questionSuffix = ".question.json"
	socketPrefix   = "desk-"
	socketSuffix   = ".sock"
	draftPrefix    = "draft-"
)

// maxFile is the most bytes of a question.
const maxFile = 20 << 20

// The forms of names in the directory; one that has another never becomes part
// of a path.
var (
	questionID = lazyregexp.New(`^apr_[0-9a-f]{32}$`)
	socketName = lazyregexp.New(`^desk-[0-9a-f]{32}\.sock$`)
)

// readOwn reads a file that only this user, or root, can have written. It
// follows no link.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return nil, err
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%q is no plain file", path)
	case stat.Uid != uint32(os.Geteuid()) && stat.Uid != 0:
		return nil, fmt.Errorf("%q belongs to another user", path)
	case stat.Mode&0o022 != 0:
		return nil, fmt.Errorf("%q can be written by others", path)
	case stat.Size > maxFile:
		return nil, fmt.Errorf("%q has %d bytes, more than %d", path, stat.Size, int64(maxFile))
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Posted is an open question as another process finds it.
type Posted struct {
	Question
	Digest string // of the question's file: an answer names it
}

// List returns the open questions, oldest first. Questions whose Airlock has
// died are not open.
func List(dir string) ([]Posted, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing questions: %w", err)
	}
	var open []Posted
	for _, entry := range entries {
		id, isQuestion := strings.CutSuffix(entry.Name(), questionSuffix)
		if !isQuestion || !questionID.MatchString(id) {
			continue
		}
		q, err := Find(dir, id)
		if errors.Is(err, ErrClosed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		open = append(open, q)
	}
	slices.SortFunc(open, func(a, b Posted) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID))
	})
	return open, nil
}

// ErrClosed says that a question is not open: it was answered, expired, or its
// Airlock has ended.
var ErrClosed = errors.New("the question is not open")

// Find returns one open question.
func Find(dir, id string) (Posted, error) {
	if !questionID.MatchString(id) {
		return Posted{}, fmt.Errorf("%q is not the ID of a question: %w", id, ErrClosed)
	}
	path := filepath.Join(dir, id+questionSuffix)
	if !store.IsHeld(path) {
		return Posted{}, fmt.Errorf("finding question %q: %w", id, ErrClosed)
	}
	data, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Posted{}, fmt.Errorf("finding question %q: %w", id, ErrClosed)
	}
	if err != nil {
		return Posted{}, fmt.Errorf("finding question %q: %w", id, err)
	}
	var q Question
	if err := strictjson.Unmarshal(data, &q); err != nil || q.ID != id {
		return Posted{}, fmt.Errorf("question %q is damaged", id)
	}
	return Posted{q, canon.Digest(data)}, nil
}

// sweep removes the questions and sockets of dead processes, and what older
// versions have left. That the questions were asked is in the audit log.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		switch {
		case strings.HasSuffix(name, questionSuffix) && !store.IsHeld(path),
			strings.HasPrefix(name, socketPrefix) && !isServed(dir, name),
			strings.HasSuffix(name, ".answer.json"),
			strings.HasPrefix(name, "watcher-") && !store.IsHeld(path):
			errs = append(errs, removeIfThere(path))
		}
	}
	return errors.Join(errs...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
