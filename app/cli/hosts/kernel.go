package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/server/kernel"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// kernelVerb is the whole command line of mcp-kernel-server.
type kernelVerb struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	verb.ConfigFlag
	Stdio bool `help:"Serve one agent host over stdin and stdout."`
	HTTP  bool `name:"http" help:"Serve hosts over HTTP at /mcp, on the loopback interface; each needs a token (airlock tokens create, or an agent's)."`
	Port  int  `default:"8080" help:"The port of --http; 0 takes a free one."`
}

// KernelMain runs the command line of mcp-kernel-server and returns the exit code. Over stdio,
// stdout carries the protocol. Over HTTP, the address is printed on stdout. Everything else goes
// to stderr. Cancelling ctx ends the server.
func KernelMain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return verb.RunVerbless(ctx, &kernelVerb{}, "mcp-kernel-server",
		"The tools of agent-os-kernel, by Airlock: code is judged, claims are checked, actions of agents are carried "+
			"out under policies.",
		args, stdin, stdout, stderr)
}

func (v *kernelVerb) check() error {
	switch {
	case v.Stdio == v.HTTP:
		return verb.Usage("one of --stdio and --http shows how hosts are served", "mcp-kernel-server --stdio")
	case v.Port < 0 || v.Port > 65535:
		return verb.Usage(fmt.Sprintf("there is no port %d", v.Port), "mcp-kernel-server --http --port 8080")
	}
	return nil
}

func (v *kernelVerb) Do(ctx context.Context, s *verb.Streams) (err error) {
	if err := v.check(); err != nil {
		return err
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	c.Serve.Listen = "127.0.0.1:" + strconv.Itoa(v.Port)
	token, err := agentToken() // before a process is started that could inherit it
	if err != nil {
		return err
	}
	var listener *daemon.Listener
	exporter, logger, end, err := verb.BeginExport(ctx, verb.NewLogger(s.Err, false, slog.LevelWarn), v.HTTP)
	if err != nil {
		return err
	}
	defer end()
	opts := system.Options{Serving: true, Tools: upstreams.CachedThenServers, Logger: logger,
		Reread: verb.Reread(c, c.Serve.Listen)}
	if v.HTTP {
		if listener, err = daemon.Listen(ctx, c); err != nil {
			return err
		}
		defer listener.Close() // it may be closed already, so the error is ignored
	} else {
		opts.Host = hostProcess()
	}
	opened, err := verb.OpenSystem(ctx, c, s.Err, opts)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { opened.Watch(watching) })
	s.Hangup.Reloads(func() { opened.Reload(watching) })
	if v.HTTP {
		err = serveKernel(ctx, s, c, opened, listener, exporter.Handler())
	} else {
		err = attendKernel(ctx, s, opened, token)
	}
	s.Hangup.Reloads(nil)
	stop()
	watch.Wait()
	return errors.Join(err, opened.Close())
}

// attendKernel serves one host over stdio. Its caller is the agent of the token, or the user if
// token is nil.
func attendKernel(ctx context.Context, s *verb.Streams, opened *system.System, token *secret.Value) (err error) {
	known, err := opened.OpenAgents(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, known.Close()) }()
	k, _, err := opened.OpenKernel(ctx, known)
	if err != nil {
		return err
	}
	var local server.Local
	if token != nil {
		if local, err = agentOf(ctx, known, *token, opened.Profile()); err != nil {
			return err
		}
	}
	face, err := kernel.New(k, kernel.Options{
		Principal: setup.Principal(), Local: local, Profile: opened.Profile(), Logger: opened.Logger(),
		Gate: opened.Gate(), EndSession: opened.Runs().EndSession,
	})
	if err != nil {
		return err
	}
	err = face.Serve(ctx, s.In, s.Out)
	face.Close()
	return err
}

// serveKernel serves hosts over HTTP until ctx ends.
func serveKernel(ctx context.Context, s *verb.Streams, c *config.Config, opened *system.System,
	listener *daemon.Listener,
	metrics http.Handler) error {
	d, err := daemon.New(ctx, daemon.Options{Config: c, System: opened, Version: verb.Version, Metrics: metrics,
		Logger: opened.Logger(), Kernel: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s/mcp\n", listener.URL())
	return errors.Join(d.Serve(ctx, listener), d.Close())
}
