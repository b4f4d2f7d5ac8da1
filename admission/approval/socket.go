package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxClients is the maximum number of concurrent connections to one desk; more wait.
const maxClients = 16

// listener accepts answers of other processes to the questions of one desk.
type listener struct {
	desk    *Desk
	name    string // of the socket in the desk's directory
	socket  *net.UnixListener
	serving sync.WaitGroup
}

// listen creates the desk's socket and serves it until close.
func listen(d *Desk) (*listener, error) {
	l := &listener{desk: d, name: socketPrefix + telemetry.NewTraceID() + socketSuffix}
	draft := draftPrefix + l.name // under its final name, sweep would remove it before it listens
	path, done, err := shortPath(d.dir, draft)
	if err != nil {
		return nil, err
	}
	defer done()
	if l.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, err
	}
	l.socket.SetUnlinkOnClose(false) // the short path may belong to another process by then
	err = os.Chmod(filepath.Join(d.dir, draft), 0o600)
	if err == nil {
		err = os.Rename(filepath.Join(d.dir, draft), filepath.Join(d.dir, l.name))
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.serving.Go(l.serve)
	return l, nil
}

// close closes the socket and waits for active connections.
func (l *listener) close() error {
	err := l.socket.Close()
	l.serving.Wait()
	return errors.Join(err, removeIfThere(filepath.Join(l.desk.dir, l.name)))
}

func (l *listener) serve() {
	clients := make(chan struct{}, maxClients)
	for {
		conn, err := l.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.desk.opts.Logger.WarnContext(context.Background(), "an answer could not be taken",
				slog.Any(telemetry.KeyError, err))
			time.Sleep(acceptPause)
			continue
		}
		clients <- struct{}{}
		l.serving.Go(func() {
			defer func() { <-clients }()
			defer conn.Close()
			if err := l.answer(conn); err != nil {
				l.desk.opts.Logger.WarnContext(context.Background(), "an answer was not taken",
					slog.Any(telemetry.KeyError, err))
			}
		})
	}
}

// acceptPause is the delay before a desk retries after a failed accept, for example for lack of
// file descriptors.
const acceptPause = 100 * time.Millisecond

// answer reads one request and writes the response.
func (l *listener) answer(conn *net.UnixConn) error {
	if err := conn.SetDeadline(time.Now().Add(socketTimeout)); err != nil {
		return err
	}
	var r request
	if err := strictjson.NewDecoder(io.LimitReader(conn, maxLine)).Decode(&r); errors.Is(err, io.EOF) {
		return nil // the client only checked whether the desk is served
	} else if err != nil {
		return fmt.Errorf("a process sent no answer: %w", err)
	}
	pid, uid, err := procfs.Peer(conn)
	if err != nil {
		return err
	}
	from := peer{pid, uid, conn}
	return json.NewEncoder(conn).Encode(l.desk.take(r, from))
}

// name describes the peer, from information of the kernel.
func (p peer) name() string {
	if u, err := user.LookupId(strconv.Itoa(p.user)); err == nil {
		return u.Username + ", command line"
	}
	return fmt.Sprintf("uid:%d, command line", p.user)
}
