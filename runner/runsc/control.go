package runsc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// control talks to gVisor's kernel over its control socket: one JSON object
// per call, with descriptors beside it, one call at a time (gVisor, pkg/urpc).
type control struct {
	conn    *net.UnixConn
	answers *strictjson.Decoder
}

// dialControl connects to the socket at path.
func dialControl(path string) (*control, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("connecting to the sandbox's kernel: %w", err)
	}
	return &control{conn: conn, answers: strictjson.NewDecoder(conn)}, nil
}

func (c *control) close() error { return c.conn.Close() }

// call calls a method and waits for it to end. The files are lent for the time
// of the call. After an error the connection cannot be used any more.
func (c *control) call(ctx context.Context, method string, arg any, files ...*os.File) error {
	request, err := json.Marshal(map[string]any{"method": method, "arg": arg})
	if err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, _, err := c.conn.WriteMsgUnix(request, rights, nil); err != nil {
		return fmt.Errorf("calling %s: %w", method, errors.Join(err, ctx.Err()))
	}
	var answer struct {
		Success bool   `json:"success"`
		Err     string `json:"err"`
	}
	if err := c.answers.DecodeOpen(&answer); err != nil {
		return fmt.Errorf("calling %s: %w", method, errors.Join(err, ctx.Err()))
	}
	if !answer.Success {
		return fmt.Errorf("calling %s: %s", method, gvisor.OneLine(answer.Err))
	}
	return nil
}

// The methods that are used (gVisor, runsc/boot, containerManager).
const (
	methodNetwork    = "containerManager.SetNetworkArgs"
	methodStart      = "containerManager.StartRoot"
	methodRestore    = "containerManager.Restore"
	methodCheckpoint = "containerManager.Checkpoint"
	methodPause      = "containerManager.Pause"
	methodResume     = "containerManager.Resume"
	methodSignal     = "containerManager.Signal"
)
