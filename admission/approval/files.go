package approval

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Open questions are files in a directory that only its owner can access, so that other processes
// of the owner can show them. Answers are not files: they are sent to the process that asks,
// through its socket in the same directory. Sandboxes cannot access the directory.
const (
	questionSuffix = ".question.json"
	socketPrefix   = "desk-"
	socketSuffix   = ".sock"
	draftPrefix    = "draft-"
)

// maxFile is the maximum size of a question in bytes.
const maxFile = 20 << 20

// The valid forms of names in the directory. Other names are never used in a path.
var (
	questionID = lazyregexp.New(`^apr_[0-9a-f]{32}$`)
	socketName = lazyregexp.New(`^desk-[0-9a-f]{32}\.sock$`)
)

// readOwn reads a file that only this user or root can have written. It does not follow links.
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
		return nil, fmt.Errorf("%q is not a regular file", path)
	case stat.Uid != uint32(os.Geteuid()) && stat.Uid != 0:
		return nil, fmt.Errorf("%q belongs to another user", path)
	case stat.Mode&0o022 != 0:
		return nil, fmt.Errorf("%q can be written by others", path)
	case stat.Size > maxFile:
		return nil, fmt.Errorf("%q has %d bytes, more than %d", path, stat.Size, int64(maxFile))
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Posted is an open question as read by another process.
type Posted struct {
	Question
	Digest string // of the question's file; an answer must contain it
	// Progress says who has approved it already and who has to. Only the process that asks knows it.
	Progress string `json:",omitempty"`
	// Escalated is the role that may answer in place of the owner. Only the process that asks knows it.
	Escalated string `json:",omitempty"`
	// Node is the node of the cluster that asks, if it is another one.
	Node string `json:",omitempty"`
}

// List returns the open questions, oldest first. Questions of processes that have died are not
// included.
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
	sortPosted(open)
	return open, nil
}

// ErrClosed is returned if a question is not open: it was answered, it expired, or its Airlock has
// ended.
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
	return Posted{Question: q, Digest: canon.Digest(data)}, nil
}

// sweep removes the questions and sockets of dead processes and the files of older versions. The
// audit log has a record of the questions.
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
