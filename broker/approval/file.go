package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Questions and answers are files in one directory that only its owner can use:
// whoever can write there is the person whose Airlock it is. Sandboxes see
// nothing of it.
const (
	questionSuffix = ".question.json"
	answerSuffix   = ".answer.json"
	watcherPrefix  = "watcher-"
)

// maxFile is the most bytes of a question or an answer.
const maxFile = 20 << 20

// questionID is the form of a question's ID; a name that is not of it never
// becomes part of a path.
var questionID = regexp.MustCompile(`^apr_[0-9a-f]{32}$`)

// reply is what an answer's file holds.
type reply struct {
	Answer string `json:"answer"` // "approve" or "deny"
	// Question is the digest of the question's file as the person saw it.
	Question string `json:"question"`
	By       string `json:"by"`
	ForRun   bool   `json:"for_run,omitempty"`
}

const (
	replyApprove = "approve"
	replyDeny    = "deny"
)

// readOwn reads a file that nobody but this user, or root, can have written. It
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

// parseReply reads an answer and checks that it was given to the question with
// that digest.
func parseReply(data []byte, digest string) (Verdict, error) {
	var r reply
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return Verdict{}, errors.New("it is no answer")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return Verdict{}, errors.New("there is more after the answer")
	}
	if r.Question != digest {
		return Verdict{}, errors.New("it answers another question, or one that was changed after it was asked")
	}
	switch r.Answer {
	case replyApprove:
		return Verdict{Answer: Yes, By: r.By, ForRun: r.ForRun}, nil
	case replyDeny:
		return Verdict{Answer: No, By: r.By}, nil
	}
	return Verdict{}, fmt.Errorf("it says neither %s nor %s", replyApprove, replyDeny)
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
	sortByTime(open)
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
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil || q.ID != id {
		return Posted{}, fmt.Errorf("question %q is damaged", id)
	}
	return Posted{q, canon.Digest(data)}, nil
}

// Reply answers an open question, once. It holds for the question exactly as
// q has it; forRun extends an approval to the same tool's further calls in the run.
// An approval from within the agent's host is refused with ErrOfHost.
func Reply(dir string, q Posted, approve bool, by string, forRun bool) error {
	if !questionID.MatchString(q.ID) {
		return fmt.Errorf("answering question %q: %w", q.ID, ErrClosed)
	}
	if !store.IsHeld(filepath.Join(dir, q.ID+questionSuffix)) {
		return fmt.Errorf("answering question %q: %w", q.ID, ErrClosed)
	}
	if approve && isWithin(q.HostPID) {
		return fmt.Errorf("answering question %q: %w", q.ID, ErrOfHost)
	}
	r := reply{Answer: replyDeny, Question: q.Digest, By: by}
	if approve {
		r.Answer, r.ForRun = replyApprove, forRun
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("answering question %q: %w", q.ID, err)
	}
	err = store.CreateFile(filepath.Join(dir, q.ID+answerSuffix), data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("answering question %q: somebody already has: %w", q.ID, ErrClosed)
	}
	if err != nil {
		return fmt.Errorf("answering question %q: %w", q.ID, err)
	}
	return nil
}
