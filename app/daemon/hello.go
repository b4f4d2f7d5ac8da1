package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Host is a host that joins a daemon.
type Host struct {
	Config  *config.Config
	Version string        // of Airlock
	Profile string        // the name of its profile; may be empty
	Agent   *secret.Value // the token of the agent that connects; nil means the user
}

// Join connects a host to the running daemon of the same user, state directory and
// configuration. MCP follows on the connection, with one message on each line. If no daemon
// is running, Join returns join.ErrNone. If the daemon refuses the host, for example because
// their configurations differ, it returns a *join.RefusedError.
func Join(h Host) (*join.Conn, error) {
	greeting := join.Hello{Purpose: join.PurposeHost, Version: h.Version, Config: config.Digest(h.Config),
		Profile: h.Profile}
	if h.Agent != nil {
		greeting.Agent = h.Agent.Reveal()
	}
	return join.Dial(greeting)
}

// Ask returns the status of the running daemon.
func Ask() (join.Status, error) {
	conn, err := join.Dial(join.Hello{Purpose: join.PurposeStatus})
	if err != nil {
		return join.Status{}, err
	}
	return conn.Status, conn.Close()
}

// ConsoleLink returns a link to the console of the running daemon.
func ConsoleLink() (join.Link, error) {
	conn, err := join.Dial(join.Hello{Purpose: join.PurposeConsole})
	if err != nil {
		return join.Link{}, err
	}
	if conn.Link == nil {
		return join.Link{}, errors.Join(&join.RefusedError{Reason: "the daemon is of a version that has no console"},
			conn.Close())
	}
	return *conn.Link, conn.Close()
}

// RestartServer ends the daemon's connection to a server and opens another one.
func RestartServer(id string) error {
	return send(join.Hello{Purpose: join.PurposeRestart, Server: id})
}

// send sends a request that the daemon answers with its status alone.
func send(h join.Hello) error {
	conn, err := join.Dial(h)
	if err != nil {
		return err
	}
	return conn.Close()
}

// SuspendRun suspends a run of the running daemon that waits for a person.
func SuspendRun(id string) error { return send(join.Hello{Purpose: join.PurposeSuspend, Run: id}) }

// ResumeRun continues a suspended run of the running daemon.
func ResumeRun(id string) error { return send(join.Hello{Purpose: join.PurposeResume, Run: id}) }

// Grants returns the grants in force of the running daemon.
func Grants() (grants []approval.Grant, err error) {
	text, err := rest(join.Hello{Purpose: join.PurposeGrants})
	if err == nil {
		err = strictjson.UnmarshalOpen(text, &grants)
	}
	return grants, err
}

// WithdrawGrant ends a grant of the running daemon. Calls that it has covered go on.
func WithdrawGrant(id string) error {
	return send(join.Hello{Purpose: join.PurposeWithdraw, Grant: id})
}

// ServerLog returns what a server of the running daemon has written to stderr.
func ServerLog(id string) ([]byte, error) {
	return rest(join.Hello{Purpose: join.PurposeLog, Server: id})
}

// ServerStates returns the states of the running daemon's servers.
func ServerStates() (states []upstreams.ServerState, err error) {
	text, err := rest(join.Hello{Purpose: join.PurposeServers})
	if err == nil {
		err = strictjson.UnmarshalOpen(text, &states)
	}
	return states, err
}

// rest returns what the daemon sends after its reply.
func rest(h join.Hello) ([]byte, error) {
	conn, err := join.Dial(h)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(conn)
	return text, errors.Join(err, conn.Close())
}

// Stop shuts the running daemon down, waits until its process has ended, and returns the
// process ID.
func Stop(ctx context.Context) (pid int, err error) {
	conn, err := join.Dial(join.Hello{Purpose: join.PurposeStop})
	if err != nil {
		return 0, err
	}
	// An error does not matter, because the process is waited for.
	_, _ = conn.Read(make([]byte, 1))
	return conn.PID(), errors.Join(conn.Close(), procfs.Wait(ctx, conn.PID()))
}

// alreadyRunning returns the error for a second daemon in one state directory.
func alreadyRunning() error {
	running := errors.New("a daemon serves this state directory already")
	if s, err := Ask(); err == nil {
		running = fmt.Errorf("a daemon serves this state directory already: process %d, %s", s.PID, s.URL)
	}
	return &setup.Error{Err: running, Advice: "airlock status, airlock stop"}
}
