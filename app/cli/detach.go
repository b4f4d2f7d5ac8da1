package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/internal/store"
)

// maxServeLog is the size in bytes at which the log of a detached daemon is started again.
const maxServeLog = 16 << 20

// detach starts this program again in a new session, and returns when the daemon can be reached
// or has failed.
func (v *serveVerb) detach(ctx context.Context, s *streams) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	args := []string{"serve", "--detached"}
	if v.Config != "" {
		args = append(args, "--config", v.Config)
	}
	if v.Listen != "" {
		args = append(args, "--listen", v.Listen)
	}
	log, path, err := openServeLog()
	if err != nil {
		return err
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("opening the log of the daemon: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // unless it serves before ctx ends
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // the reason is in the log
		return failedDaemon(log, begin, cmd.ProcessState.ExitCode())
	}
	fmt.Fprintf(s.err, "airlock: process %d serves; its log is %s\n", cmd.Process.Pid, path)
	fmt.Fprint(s.out, url)
	return cmd.Process.Release()
}

// openServeLog opens the log of a detached daemon for appending.
func openServeLog() (*os.File, string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, "", fmt.Errorf("opening the log of the daemon: %w", err)
	}
	path := filepath.Join(home, "serve.log")
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxServeLog {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("opening the log of the daemon: %w", err)
	}
	return log, path, nil
}

// failedDaemon returns why a daemon did not start: the last error and hint in its log, with its
// exit code if it exited by itself.
func failedDaemon(log *os.File, begin int64, code int) error {
	const most = 16 << 10
	said, err := io.ReadAll(io.NewSectionReader(log, begin, most))
	if err != nil {
		return fmt.Errorf("reading the log of the daemon: %w", err)
	}
	problem, hint := "", ""
	for line := range strings.Lines(string(said)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "hint: "); ok {
			hint = text
		} else if text, ok := strings.CutPrefix(line, "airlock: "); ok {
			problem = text
		}
	}
	return &hinted{errors.New(cmp.Or(problem, "the daemon ended before it could be reached")), cmp.Or(hint, "airlock serve shows what it says"), max(code, ExitFailed)}
}

type statusVerb struct {
	configFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the status of the daemon of this user, state directory and configuration.
func (v *statusVerb) Run(s *streams) error {
	status, err := daemon.Ask()
	if err != nil {
		return noDaemon(err)
	}
	if v.JSON {
		return printLine(s.out, status)
	}
	_, err = fmt.Fprintf(s.out, "%s at %s: process %d, version %s, for %s; %s joined, %s going on\n", status.State, status.URL, status.PID, status.Version,
		time.Since(status.Since).Round(time.Second), counted(status.Hosts, "host"), counted(status.Runs, "run"))
	if err == nil && status.Reason != "" {
		_, err = fmt.Fprintf(s.out, "no run can be made: %s\n", clean(status.Reason))
	}
	return err
}

// noDaemon is the error of verbs that need a daemon.
func noDaemon(err error) error {
	if errors.Is(err, join.ErrNone) {
		return &hinted{join.ErrNone, "airlock serve --detach", ExitFailed}
	}
	return err
}

type stopVerb struct{ configFlag }

// Run shuts the daemon down gracefully, and returns when it has ended.
func (v *stopVerb) Run(ctx context.Context, s *streams) error {
	done := progress(&streams{err: s.err}, "waiting for runs to end")
	pid, err := daemon.Stop(ctx)
	done()
	if err != nil {
		return noDaemon(err)
	}
	_, err = fmt.Fprintf(s.err, "airlock: process %d has ended\n", pid)
	return err
}

// stamped adds the time to the messages for people in the log of a detached daemon. Lines of
// the logger have a time already. Each write must be one message.
type stamped struct{ to io.Writer }

// Write writes the time and b.
func (w stamped) Write(b []byte) (int, error) {
	line := b
	if !bytes.HasPrefix(b, []byte("time=")) {
		line = append([]byte("time="+time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")+" "), b...)
	}
	if _, err := w.to.Write(line); err != nil {
		return 0, err
	}
	return len(b), nil
}
