// Package join is the client of a daemon's socket. It finds the socket, checks the process that
// listens on it, and defines the messages of both ends. It imports little, so that package fastpath
// can join a daemon before the rest of the program is initialised.
package join

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The purposes of a connection to a daemon's socket.
const (
	PurposeHost     = "join"     // serve a host: MCP messages follow, one on each line
	PurposeRun      = "run"      // run one program: see FromClient and ToClient
	PurposeStatus   = "status"   // report the status of the daemon
	PurposeConsole  = "console"  // make a link that signs in to the console
	PurposeRestart  = "restart"  // end the connection to Server and open another one
	PurposeLog      = "log"      // what Server has written to stderr follows as text
	PurposeServers  = "servers"  // the states of all servers follow as JSON
	PurposeSuspend  = "suspend"  // suspend Run, which waits for a person
	PurposeResume   = "resume"   // continue Run, which is suspended
	PurposeGrants   = "grants"   // the grants in force follow as JSON
	PurposeWithdraw = "withdraw" // withdraw Grant
	PurposeList     = "list"     // List of all nodes of the cluster follows as JSON
	PurposeStop     = "stop"     // shut down gracefully; the connection ends with the daemon
)

// Hello is the first line on the socket, from the client.
type Hello struct {
	Purpose string `json:"purpose"`
	Version string `json:"version,omitempty"`
	Config  string `json:"config,omitempty"` // the digest of the configuration; of PurposeHost and PurposeRun
	// instead of Config, the digest of its file, see package configfile; of PurposeRun
	Source  string `json:"source,omitempty"`
	Profile string `json:"profile,omitempty"` // of PurposeHost and PurposeRun; empty for the default one
	Agent   string `json:"agent,omitempty"`   // the token of the agent that the host is; of PurposeHost
	Server  string `json:"server,omitempty"`  // of PurposeRestart and PurposeLog
	Run     string `json:"run,omitempty"`     // the ID of a run; of PurposeSuspend and PurposeResume
	Grant   string `json:"grant,omitempty"`   // the ID of a grant; of PurposeWithdraw
	List    string `json:"list,omitempty"`    // runs, servers or questions; of PurposeList
	// Query selects entries of the list; JSON of listing.RunQuery for runs.
	Query json.RawMessage `json:"query,omitempty"`
}

// Reply is the daemon's answer to Hello. If the daemon refuses, Refused is the reason, and Advice is what to do
// instead.
type Reply struct {
	Refused string  `json:"refused,omitempty"`
	Advice  string  `json:"advice,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Link    *Link   `json:"link,omitempty"` // of PurposeConsole
}

// Link is an address that signs in to the console once, within two minutes.
type Link struct {
	URL string `json:"url"`
	// Limited is the reason why a user of the link may neither answer questions nor accept changes.
	// It is empty if there are no such limits.
	Limited string `json:"limited,omitempty"`
}

// Status is the status of a daemon.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	URL     string    `json:"url,omitempty"`
	Since   time.Time `json:"since"`
	State   string    `json:"state"`            // starting, ready, unavailable or draining
	Reason  string    `json:"reason,omitempty"` // why it is not ready
	Hosts   int       `json:"hosts"`            // that joined through the socket
	Runs    int       `json:"runs"`             // that are queued or running
	// Suspended is how many of the runs wait for people without a sandbox.
	Suspended int `json:"suspended,omitempty"`
	// Pending is why the configuration as it is now is not in force, with a hint; empty if it is.
	Pending     string `json:"pending,omitempty"`
	PendingHint string `json:"pending_hint,omitempty"`
}

// The bounds of a greeting.
const (
	MaxHello  = 4 << 10         // bytes of a line
	HelloTime = 5 * time.Second // until both lines have been read
)

// Path returns the path of the socket at which the daemon of the state directory listens.
// It may be too long for a socket's address, see ShortPath.
func Path() (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(store.Daemon(home), "socket"), nil
}

// ShortPath returns another path of the file at path that fits into the 108 bytes of a socket's
// address, however long path is. The caller must call done after using it.
func ShortPath(path string) (short string, done func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}

// ErrNone is returned if no daemon serves this state directory.
var ErrNone = errors.New("no daemon is running for this state directory")

// RefusedError is the reason why a running daemon refuses a connection.
type RefusedError struct {
	Reason string
	Advice string // what to do instead; may be empty
}

// Error is one sentence.
func (e *RefusedError) Error() string { return e.Reason }

// Hint returns what to do instead.
func (e *RefusedError) Hint() string { return e.Advice }

// Conn is a connection that a daemon has accepted. Read, Write and Close may be called
// concurrently. It does not use package net, because net is initialised after nearly all other
// packages.
type Conn struct {
	Status Status
	Link   *Link // of PurposeConsole

	socket *os.File
	in     *bufio.Reader // may have buffered data that follows the reply
}

// NewConn returns a connection of which nothing has been read.
func NewConn(socket *os.File) *Conn {
	return &Conn{socket: socket, in: bufio.NewReaderSize(socket, 64<<10)}
}

// Read reads the data after the daemon's reply.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// Write writes to the daemon.
func (c *Conn) Write(p []byte) (int, error) { return c.socket.Write(p) }

// Close closes the connection. Blocked reads and writes return an error.
func (c *Conn) Close() error { return c.socket.Close() }

// SetReadDeadline sets the time at which reads fail with os.ErrDeadlineExceeded. The zero time
// means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// ReadLine reads up to the end of a line. On an error it returns the part of the line that it read.
func (c *Conn) ReadLine() ([]byte, error) { return c.in.ReadBytes('\n') }

// Unread puts bytes back, to be read again before anything else.
func (c *Conn) Unread(p []byte) {
	c.in = bufio.NewReader(&replayed{p, c.in})
}

// replayed reads bytes that were put back and then the rest. Unlike io.MultiReader it can be read
// again after an error, for example a deadline.
type replayed struct {
	bytes []byte
	then  *bufio.Reader
}

func (r *replayed) Read(p []byte) (int, error) {
	if len(r.bytes) == 0 {
		return r.then.Read(p)
	}
	n := copy(p, r.bytes)
	r.bytes = r.bytes[n:]
	return n, nil
}

// PID returns the process ID of the daemon.
func (c *Conn) PID() int { return c.Status.PID }

// CloseWrite closes the connection for writing. It can still be read.
func (c *Conn) CloseWrite() error {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); err != nil {
		return err
	}
	return failed
}

// Dial connects to the daemon of the state directory and exchanges a line with it. The
// error is ErrNone if no daemon runs, and *RefusedError if it refuses or is not trusted.
func Dial(h Hello) (*Conn, error) {
	path, err := Path()
	if err != nil {
		return nil, err
	}
	socket, err := connect(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	made, err := greet(socket, h)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return made, nil
}

// connect connects to a unix socket without blocking. If the queue of the listening process is
// full, it returns an error.
func connect(path string) (*os.File, error) {
	address, done, err := ShortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	for {
		err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: address})
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, errors.Join(os.NewSyscallError("connect", err), syscall.Close(fd))
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

func greet(socket *os.File, h Hello) (*Conn, error) {
	if err := Trust(socket, h.Purpose); err != nil {
		return nil, &RefusedError{Reason: err.Error()}
	}
	if err := socket.SetDeadline(time.Now().Add(HelloTime)); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(socket).Encode(h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	conn := NewConn(socket)
	line, err := HelloLine(conn.in)
	if err != nil { // it has just ended
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var r Reply
	if err := strictjson.UnmarshalOpen(line, &r); err != nil {
		return nil, &RefusedError{Reason: "the daemon answers with what this version does not understand"}
	}
	if r.Refused != "" {
		return nil, &RefusedError{r.Refused, r.Advice}
	}
	if r.Status != nil {
		conn.Status = *r.Status
	}
	conn.Link = r.Link
	return conn, socket.SetDeadline(time.Time{})
}

// HelloLine reads one line of at most MaxHello bytes.
func HelloLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil && len(line) > MaxHello {
		err = bufio.ErrBufferFull
	}
	return line, err
}

// Trust returns nil if the process at the other end belongs to this user. For PurposeHost and
// PurposeRun it must also be alive and run this very program. All of this comes from the kernel.
func Trust(conn syscall.Conn, purpose string) error {
	pid, uid, err := procfs.Peer(conn)
	if err != nil {
		return fmt.Errorf("who is at the other end of the socket is not known: %w", err)
	}
	if uid != os.Geteuid() {
		return errors.New("the process at the other end of the socket belongs to another user")
	}
	if (purpose == PurposeHost || purpose == PurposeRun) && !(procfs.RunsThisProgram(pid) && procfs.PeerLives(conn)) {
		return errors.New("the process at the other end of the socket runs another program, or another version of " +
			"this one")
	}
	return nil
}
