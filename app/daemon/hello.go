package daemon

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
)

// What a connection to a daemon's socket is for.
const (
	purposeJoin    = "join"    // serve a host: MCP follows, a message a line
	purposeRun     = "run"     // run one program: see fromClient and toClient
	purposeStatus  = "status"  // tell how the daemon is
	purposeConsole = "console" // make a link that signs in to the console
	purposeStop    = "stop"    // end in order; the connection ends with the daemon
)

// hello is the first line on the socket, from who connects.
type hello struct {
	Purpose string `json:"purpose"`
	Version string `json:"version,omitempty"`
	Config  string `json:"config,omitempty"`  // its digest; of purposeJoin and purposeRun
	Profile string `json:"profile,omitempty"` // likewise
	Agent   string `json:"agent,omitempty"`   // the token of the agent that the host is; of purposeJoin
}

// reply is the daemon's line. What is refused has the reason.
type reply struct {
	Refused string  `json:"refused,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Link    *Link   `json:"link,omitempty"` // of purposeConsole
}

// Link is an address that signs in to the console once, within two minutes.
type Link struct {
	URL string `json:"url"`
	// Limited is why who uses it may neither answer questions nor accept what changed;
	// empty: they may do all.
	Limited string `json:"limited,omitempty"`
}

// Status is how a daemon is.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	URL     string    `json:"url,omitempty"`
	Since   time.Time `json:"since"`
	State   string    `json:"state"` // starting, ready or draining
	Hosts   int       `json:"hosts"` // that joined through the socket
	Runs    int       `json:"runs"`  // that are going on
}

const (
	maxHello  = 4 << 10
	helloTime = 5 * time.Second
)

// socketPath is where the daemon of a configuration's file listens for hosts of
// the same user and state directory.
func socketPath(c *config.Config) (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.File))
	return filepath.Join(store.Run(home, os.Getenv), fmt.Sprintf("daemon-%x.sock", sum[:4])), nil
}

// ErrNone says that no daemon of this user, state directory and configuration
// file is running.
var ErrNone = errors.New("no daemon is running for this configuration")

// RefusedError says why a daemon that is running does not take a connection.
type RefusedError struct{ Reason string }

// Error is one sentence.
func (e *RefusedError) Error() string { return e.Reason }

// Conn is a connection that a daemon has taken.
type Conn struct {
	*net.UnixConn
	in     *bufio.Reader // may hold what came behind the reply
	status Status
	link   *Link
}

// Read reads what the daemon writes behind its reply.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// PID is the daemon's process.
func (c *Conn) PID() int { return c.status.PID }

// dial connects to the daemon of a configuration and exchanges a line with it:
// ErrNone where there is none, *RefusedError where it refuses.
func dial(c *config.Config, h hello) (*Conn, error) {
	path, err := socketPath(c)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	made, err := greet(conn, h)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return made, nil
}

func greet(conn *net.UnixConn, h hello) (*Conn, error) {
	if err := trusted(conn, h.Purpose); err != nil {
		return nil, &RefusedError{err.Error()}
	}
	if err := conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(conn).Encode(h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	line, err := helloLine(in)
	if err != nil { // it has just ended
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, &RefusedError{"the daemon answers with what this version does not understand"}
	}
	if r.Refused != "" {
		return nil, &RefusedError{r.Refused}
	}
	if r.Status == nil {
		r.Status = &Status{}
	}
	return &Conn{conn, in, *r.Status, r.Link}, conn.SetDeadline(time.Time{})
}

// helloLine reads one line of at most maxHello bytes.
func helloLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil && len(line) > maxHello {
		err = bufio.ErrBufferFull
	}
	return line, err
}

// trusted returns nil when the process at the other end is of this user and, where
// a host joins or a program is run, runs this very program, as the kernel says.
func trusted(conn *net.UnixConn, purpose string) error {
	pid, uid, err := procfs.Peer(conn)
	if err != nil {
		return fmt.Errorf("who is at the other end of the socket is not known: %w", err)
	}
	if uid != os.Geteuid() {
		return errors.New("the process at the other end of the socket is another user's")
	}
	if (purpose == purposeJoin || purpose == purposeRun) && !procfs.RunsThisProgram(pid) {
		return errors.New("the process at the other end of the socket runs another program, or another version of this one")
	}
	return nil
}

// Host is who joins a daemon.
type Host struct {
	Config  *config.Config
	Version string        // Airlock's own
	Profile string        // which servers and tools it sees; empty for all
	Agent   *secret.Value // the token of the agent that it is; nil: it is the user
}

// Join connects a host to the running daemon of the same user, state directory and
// configuration. MCP follows on the connection, a message a line. ErrNone says that
// there is no daemon, *RefusedError that there is one which does not fit.
func Join(h Host) (*Conn, error) {
	greeting := hello{Purpose: purposeJoin, Version: h.Version, Config: config.Digest(h.Config), Profile: h.Profile}
	if h.Agent != nil {
		greeting.Agent = h.Agent.Reveal()
	}
	return dial(h.Config, greeting)
}

// Ask returns how the running daemon is.
func Ask(c *config.Config) (Status, error) {
	conn, err := dial(c, hello{Purpose: purposeStatus})
	if err != nil {
		return Status{}, err
	}
	return conn.status, conn.Close()
}

// ConsoleLink returns a link to the console of the running daemon.
func ConsoleLink(c *config.Config) (Link, error) {
	conn, err := dial(c, hello{Purpose: purposeConsole})
	if err != nil {
		return Link{}, err
	}
	if conn.link == nil {
		return Link{}, errors.Join(&RefusedError{"the daemon is of a version that has no console"}, conn.Close())
	}
	return *conn.link, conn.Close()
}

// Stop ends the running daemon in order, and returns its process when it has ended.
func Stop(ctx context.Context, c *config.Config) (pid int, err error) {
	conn, err := dial(c, hello{Purpose: purposeStop})
	if err != nil {
		return 0, err
	}
	// How the connection ends does not matter: the process is waited for.
	_, _ = conn.Read(make([]byte, 1))
	return conn.status.PID, errors.Join(conn.Close(), procfs.Wait(ctx, conn.status.PID))
}

// alone is why a daemon cannot serve a second time.
func alone(c *config.Config) error {
	running := errors.New("a daemon serves this configuration already")
	if s, err := Ask(c); err == nil {
		running = fmt.Errorf("a daemon serves this configuration already: process %d, %s", s.PID, s.URL)
	}
	return &system.SetupError{Err: running, Advice: "airlock status, airlock stop"}
}
