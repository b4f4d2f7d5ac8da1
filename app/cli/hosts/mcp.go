package hosts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/procfs"
)

// MCP is airlock mcp.
type MCP struct {
	verb.Profiled
	Face    string `enum:"code,gateway" default:"code" help:"code for search, read and run; gateway for the two tools of the risk gateway, which qwed-mcp serves too."`
	How     bool   `help:"Serve nothing; print the command that makes Claude Code use this."`
	Verbose bool   `short:"v" help:"Say on stderr whether a daemon answers, or this process alone."`
}

// Run serves one agent host over stdin and stdout until the host disconnects or ctx ends. It uses
// the running daemon of the same user, state directory and configuration. Without a daemon, it
// serves the host in this process. stdout carries only the protocol. SIGHUP reloads the
// configuration and the policies.
func (v *MCP) Run(ctx context.Context, s *verb.Streams) error {
	if v.How {
		return v.printHow(s)
	}
	if v.Face == "gateway" {
		return attendGateway(ctx, s, v.ConfigFlag)
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if _, err := verb.ProfileName(c, v.Profile); err != nil {
		return err
	}
	token, err := agentToken()
	if err != nil {
		return err
	}
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	if err := rules.ConfirmFirst(c, directories.Home); err != nil {
		return setup.Advise(err)
	}
	end, err := verb.Announce(approval.ServesHost) // also if a daemon answers the host
	if err != nil {
		return err
	}
	defer end()
	h := daemon.Host{Config: c, Version: verb.Version, Profile: v.Profile, Agent: token}
	conn, err := daemon.Join(h)
	switch {
	case errors.Is(err, join.ErrNone):
		v.say(s, "this process answers alone: "+join.ErrNone.Error())
		return v.serveLocal(ctx, s, h)
	case err != nil:
		v.say(s, "this process answers alone: "+err.Error())
		return v.serveLocal(ctx, s, h)
	}
	v.say(s, fmt.Sprintf("the daemon with process %d answers", conn.PID()))
	s.Hangup.Reloads(func() {
		fmt.Fprintln(s.Err, "airlock: the daemon has the configuration: it puts changed files in force by itself")
	})
	defer s.Hangup.Reloads(nil)
	return daemon.Relay(ctx, s.In, s.Out, conn, func(ctx context.Context) (daemon.Backend, error) {
		return v.move(ctx, s, h)
	})
}

// hostProcess returns the process of the agent's host that started this program, also if a launcher is
// in between.
func hostProcess() int {
	host, err := procfs.Host(os.Getpid())
	if err != nil || host == 0 {
		return os.Getppid()
	}
	return host
}

func (v *MCP) say(s *verb.Streams, text string) {
	if v.Verbose {
		fmt.Fprintln(s.Err, "airlock: "+text)
	}
}

// The time in which a daemon that has ended may restart, and the pause between attempts to join it.
const (
	moveTime  = 3 * time.Second
	movePause = 100 * time.Millisecond
)

// move is called when the daemon has ended. It returns a connection to its successor, or a
// backend in this process.
func (v *MCP) move(ctx context.Context, s *verb.Streams, h daemon.Host) (daemon.Backend, error) {
	fmt.Fprintln(s.Err, "airlock: the daemon has ended; requests under way are to be sent again")
	for deadline := time.Now().Add(moveTime); time.Now().Before(deadline); {
		conn, err := daemon.Join(h)
		if err == nil {
			fmt.Fprintf(s.Err, "airlock: the daemon with process %d answers from now on\n", conn.PID())
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(movePause):
		}
	}
	fmt.Fprintln(s.Err, "airlock: this process answers alone from now on")
	opened, err := v.openStandalone(ctx, s, h)
	if err != nil {
		return nil, err
	}
	return daemon.InProcess(context.WithoutCancel(ctx), opened.face.Serve, opened.close), nil
}

// serveLocal serves the host in this process, without a daemon.
func (v *MCP) serveLocal(ctx context.Context, s *verb.Streams, h daemon.Host) error {
	opened, err := v.openStandalone(ctx, s, h)
	if err != nil {
		return err
	}
	return errors.Join(opened.face.Serve(ctx, s.In, s.Out), opened.close())
}

// standalone serves one host in this process.
type standalone struct {
	face  *code.Server
	close func() error
}

func (v *MCP) openStandalone(ctx context.Context, s *verb.Streams, h daemon.Host) (_ *standalone, err error) {
	profile, err := verb.ProfileName(h.Config, h.Profile)
	if err != nil {
		return nil, err
	}
	_, logger, end, err := verb.BeginExport(ctx, verb.NewLogger(s.Err, false, slog.LevelWarn), false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	opened, err := verb.OpenSystem(ctx, h.Config, s.Err, system.Options{
		Serving: true, Host: hostProcess(), Tools: upstreams.CachedThenServers, Logger: logger, Profile: profile,
	})
	if err != nil {
		return nil, err
	}
	agent, err := agentIn(ctx, opened, h.Agent)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	face, err := code.New(opened, opened.Runs(), code.Options{
		Version: verb.Version, Principal: setup.Principal(), Local: agent.local, Profile: opened.Profile(),
		ServerIDs: opened.ServerIDs, Packages: code.Packages(opened.Packages()), Approvals: opened.Approvals(),
		Logger: opened.Logger(), Gate: opened.Gate(),
		Files: opened.Attachments(), CallTool: opened.Face().CallTool, Similar: opened.Similar,
		Network: opened.Network(), Changes: opened,
	})
	if err != nil {
		return nil, errors.Join(err, agent.close(), opened.Close())
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { opened.Watch(watching) })
	s.Hangup.Reloads(func() { opened.Reload(watching) })
	return &standalone{face, func() error {
		face.Close()
		s.Hangup.Reloads(nil)
		stop()
		watch.Wait()
		defer end()
		return errors.Join(agent.close(), opened.Close())
	}}, nil
}

// printHow prints only the command, so that its output can be run.
func (v *MCP) printHow(s *verb.Streams) error {
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	if _, err := verb.ProfileName(c, v.Profile); err != nil {
		return err
	}
	command, err := verb.RegisterCommand(c, v.Profile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, command)
	return err
}
