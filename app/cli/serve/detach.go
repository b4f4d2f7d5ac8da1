package serve

import (
	"bufio"
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

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/internal/store"
)

// detach starts this program again in a new session, and returns when the daemon can be reached
// or has failed.
func (v *Verb) detach(ctx context.Context, s *verb.Streams) error {
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
	fmt.Fprintf(s.Err, "airlock: process %d serves; its log is %s\n", cmd.Process.Pid, path)
	fmt.Fprint(s.Out, url)
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
	path := filepath.Join(home, store.ServeLog)
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
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
	return verb.WithHint(errors.New(cmp.Or(problem, "the daemon ended before it could be reached")),
		cmp.Or(hint, "airlock serve shows what it says"), max(code, verb.ExitFailed))
}

// Status is airlock status.
type Status struct {
	verb.ConfigFlag
	Cluster bool `help:"List the nodes of the cluster, from its database."`
	JSON    bool `name:"json" help:"Print JSON."`
}

// Run prints the status of the daemon of this user, state directory and configuration.
func (v *Status) Run(ctx context.Context, s *verb.Streams) error {
	if v.Cluster {
		return printNodes(ctx, s, v.ConfigFlag, v.JSON)
	}
	status, err := daemon.Ask()
	if err != nil {
		return verb.NoDaemon(err)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, status)
	}
	_, err = fmt.Fprintf(s.Out, "%s at %s: process %d, version %s, for %s; %s joined, %s going on\n", status.State,
		status.URL, status.PID, status.Version,
		time.Since(status.Since).Round(time.Second), verb.Counted(status.Hosts, "host"),
		verb.Counted(status.Runs, "run"))
	if err == nil && status.Suspended > 0 {
		_, err = fmt.Fprintf(s.Out, "suspended until people answer: %s\n", verb.Counted(status.Suspended, "run"))
	}
	if err == nil && status.Reason != "" {
		_, err = fmt.Fprintf(s.Out, "no run can be made: %s\n", verb.Clean(status.Reason))
	}
	if err == nil && status.Pending != "" {
		_, err = fmt.Fprintf(s.Out, "%s\n", verb.Clean(status.Pending))
	}
	if err == nil && status.PendingHint != "" {
		_, err = fmt.Fprintf(s.Out, "hint: %s\n", verb.Clean(status.PendingHint))
	}
	return err
}

// Stop is airlock stop.
type Stop struct{ verb.ConfigFlag }

// Run shuts the daemon down gracefully, and returns when it has ended.
func (v *Stop) Run(ctx context.Context, s *verb.Streams) error {
	done := verb.Progress(&verb.Streams{Err: s.Err}, "waiting for runs to end")
	pid, err := daemon.Stop(ctx)
	done()
	if err != nil {
		return verb.NoDaemon(err)
	}
	_, err = fmt.Fprintf(s.Err, "airlock: process %d has ended\n", pid)
	return err
}
