package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// request is one line that another process of the owner writes to a desk's socket.
type request struct {
	ID string `json:"id"`
	// Answer is "approve" or "deny"; empty requests the outcome of the question.
	Answer string `json:"answer,omitempty"`
	// Question is the digest of the question's file as shown to the person.
	Question string `json:"question,omitempty"`
	For      string `json:"for,omitempty"`    // of an approval: the extent
	Reason   string `json:"reason,omitempty"` // of a refusal
}

const (
	replyApprove = "approve"
	replyDeny    = "deny"
)

// response is the desk's line.
type response struct {
	Taken bool `json:"taken"` // the answer was accepted
	// Refused is the reason for a refusal: one of the values below.
	Refused string `json:"refused,omitempty"`
	// Detail is a sentence for a person.
	Detail string `json:"detail,omitempty"`
}

// The values of response.Refused.
const (
	refusedClosed   = "closed"
	refusedHost     = "host"
	refusedTerminal = "terminal"
	refusedOther    = "other"
)

// maxLine is the maximum size of a request and a response in bytes. socketTimeout is the timeout
// for either side's message.
const (
	maxLine       = 16 << 10
	socketTimeout = 10 * time.Second
)

// Decision is a person's answer at a terminal.
type Decision struct {
	Approve bool
	For     Extent // of an approval
	Reason  string // of a refusal, see Response
}

// Reply answers an open question. The answer applies exactly to q. The process that asked decides whether the answer is
// accepted: only the first one is, and later ones get ErrClosed with the name of the person who was
// faster. An approval must come from a person's terminal (else ErrNoTerminal) and not from a
// process of the agent's host (else ErrOfHost). A refusal may come from any process.
//
// waits is set if the approval was accepted and other people have to approve, too: it says who.
func Reply(dir string, q Posted, by Decision) (waits string, err error) {
	r := request{ID: q.ID, Answer: replyDeny, Question: q.Digest, Reason: reason(by.Reason)}
	if by.Approve {
		r.Answer, r.For, r.Reason = replyApprove, by.For.String(), ""
	}
	answered, err := send(dir, q.Desk, r)
	if err != nil {
		return "", fmt.Errorf("answering question %q: %w", q.ID, err)
	}
	if answered.Taken {
		return answered.Detail, nil
	}
	why := errors.New("the answer was not accepted")
	switch answered.Refused {
	case refusedClosed:
		why = ErrClosed
	case refusedHost:
		why = ErrOfHost
	case refusedTerminal:
		why = ErrNoTerminal
	}
	if answered.Detail != "" {
		why = detailed{why, answered.Detail}
	}
	return "", fmt.Errorf("answering question %q: %w", q.ID, why)
}

// detailed is an error of some kind with the desk's sentence.
type detailed struct {
	kind   error
	detail string
}

func (d detailed) Error() string { return d.detail }

func (d detailed) Unwrap() error { return d.kind }

// Outcome returns a sentence that describes the outcome of a closed question.
func Outcome(dir string, q Posted) string {
	answered, err := send(dir, q.Desk, request{ID: q.ID})
	if err != nil || answered.Detail == "" {
		return "the Airlock that asked it has ended"
	}
	return answered.Detail
}

// send writes a request to a desk and returns its response.
func send(dir, desk string, r request) (response, error) {
	conn, err := dial(dir, desk)
	if err != nil {
		return response{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(socketTimeout)); err != nil {
		return response{}, err
	}
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return response{}, err
	}
	var answered response
	if err := strictjson.NewDecoder(io.LimitReader(conn, maxLine)).DecodeOpen(&answered); err != nil {
		return response{}, fmt.Errorf("the process that asked the question does not respond: %w", err)
	}
	return answered, nil
}

// dial connects to a desk's socket. It returns ErrClosed if nothing listens.
func dial(dir, desk string) (net.Conn, error) {
	if !socketName.MatchString(desk) {
		return nil, fmt.Errorf("%q is not a socket of an Airlock: %w", desk, ErrClosed)
	}
	path, done, err := shortPath(dir, desk)
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := net.Dial("unix", path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("the Airlock that asked has ended: %w", ErrClosed)
	case err != nil:
		return nil, err
	}
	return conn, nil
}

// isServed reports whether a process listens at a desk's socket.
func isServed(dir, desk string) bool {
	conn, err := dial(dir, desk)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// shortPath returns a path of a socket that fits the 108 bytes of a socket address, however deep
// the directory is. The caller must call done after using the path.
func shortPath(dir, name string) (path string, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", fmt.Sprint(d.Fd()), name), func() { d.Close() }, nil
}
