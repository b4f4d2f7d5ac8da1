// Package contained starts upstream servers in sandboxes: each in its own, which lasts as long as the connection to the
// server. A server has the packages of its image, the directories that it mounts, the variables that the configuration
// sets for it, and connections to hosts that configuration and policy both permit. It has nothing else of the host.
package contained

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/runner"
)

// Options are the options of New. All but Logger and Trial are required.
type Options struct {
	Home   string                                        // the state directory
	Runner func(context.Context) (*runner.Runner, error) // called once, when the first server starts
	Roots  func() (string, error)                        // the directory with the certificates and the name server
	Dial   Dial                                          // opens permitted connections
	Trial  *Trial                                        // of one server; nil means none, and is not required
	Logger *slog.Logger                                  // nil discards
}

// Dial opens a connection, as net.Dialer.DialContext.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Servers starts servers in sandboxes. Its methods are safe for concurrent use.
type Servers struct {
	opts   Options
	broker atomic.Pointer[broker.Broker] // decides about connections; nil before Authorize

	mu     sync.Mutex
	closed bool
	runner *runner.Runner // nil before the first start
	states map[string]*state
}

// New returns Servers that have started nothing. The caller must close them.
func New(opts *Options) *Servers {
	s := &Servers{opts: *opts, states: map[string]*state{}}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Authorize has the broker decide about the connections of servers. Before it, all are refused.
func (s *Servers) Authorize(b *broker.Broker) { s.broker.Store(b) }

// Close removes what is left of sandboxes. The connections to all servers must be closed. Calling it twice is fine.
func (s *Servers) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	sandboxes := s.runner
	s.mu.Unlock()
	if sandboxes == nil {
		return nil
	}
	return sandboxes.Close(ctx)
}

// sandboxes returns the runner, which it opens first.
func (s *Servers) sandboxes(ctx context.Context) (*runner.Runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, upstream.ErrClosed
	}
	if s.runner != nil {
		return s.runner, nil
	}
	opened, err := s.opts.Runner(context.WithoutCancel(ctx))
	if err == nil {
		s.runner = opened
	}
	return opened, err
}

// launcher starts one server.
type launcher struct {
	servers *Servers
	server  config.Server
	lock    string // path of the lock file
}

var _ upstream.Launcher = (*launcher)(nil)

// Launcher returns what starts a server with Settings.Sandbox. The references of its variables must be resolved. lock
// is the path of the lock file with its packages.
func (s *Servers) Launcher(server config.Server, lock string) upstream.Launcher {
	return &launcher{s, server, lock}
}

// Extra returns the packages of the image of a contained server, as the lock file names them. The error is
// images.ErrUnlocked if they are not locked.
func Extra(server config.Server, lockFile string) (config.Program, images.Extra, error) {
	program, err := server.Program()
	if err != nil {
		return program, images.Extra{}, err
	}
	lock, err := images.ReadPackageLock(lockFile)
	if err != nil {
		return program, images.Extra{}, err
	}
	extra, err := lock.Servers[server.ID].Extra(program.Language, program.Packages)
	extra.Server = true
	return program, extra, err
}

// Launch implements upstream.Launcher.
func (l *launcher) Launch(ctx context.Context) (upstream.Program, error) {
	started, err := l.launch(ctx)
	switch {
	case err == nil:
		return started, nil
	case errors.Is(err, images.ErrUnlocked), errors.Is(err, images.ErrNotBuilt), errors.Is(err, images.ErrStale):
		return nil, errors.New("its image is not built: run `airlock images build`")
	case errors.Is(err, upstream.ErrClosed), errors.Is(err, runner.ErrClosed):
		return nil, upstream.ErrClosed
	}
	return nil, fmt.Errorf("its sandbox could not be started: %w", err)
}

func (l *launcher) launch(ctx context.Context) (_ *program, err error) {
	p := &program{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undo.Run())
		}
	}()
	plan, extra, err := Extra(l.server, l.lock)
	if err != nil {
		return nil, err
	}
	image, err := images.OpenWith(l.servers.opts.Home, plan.Language, extra)
	if err != nil {
		return nil, err
	}
	p.undo.Add(image.Close)
	request, err := l.request(image, plan)
	if err != nil {
		return nil, err
	}
	if err := l.connect(p, &request); err != nil {
		return nil, err
	}
	if request.Network != nil {
		defer request.Network.Device.Close() // the sandbox has its own descriptor by then
	}
	sandboxes, err := l.servers.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	p.Program, err = sandboxes.StartProgram(ctx, request)
	if err != nil {
		return nil, err
	}
	p.undo.Add(p.Close)
	p.state = l.servers.started(l.server.ID, p.Program)
	return p, nil
}

// request returns the request for the server's sandbox, without a network.
func (l *launcher) request(image images.Image, plan config.Program) (runner.Request, error) {
	box := l.server.Settings.Sandbox
	args, err := command(image, plan)
	if err != nil {
		return runner.Request{}, err
	}
	limits := runner.DefaultLimits()
	limits.Memory, limits.CPUs, limits.PIDs, limits.Disk = box.Memory, box.CPUs, box.PIDs, box.Disk
	request := runner.Request{Limits: limits, Image: runner.Image{Name: image.Name, Digest: image.Digest,
		RootFS: image.RootFS, Layout: image.Layout, Args: args, Env: environment(image.Env, l.server)}}
	if request.Mounts, err = mounts(box.Mounts, plan.Project); err != nil {
		return request, err
	}
	if l.servers.onTrial(l.server.ID) {
		request.Mounts = l.servers.opts.Trial.mounts(request.Mounts, l.servers.state(l.server.ID))
	}
	request.User, err = ownerOf(request.Mounts)
	return request, err
}

// command returns the command that starts a server in its image.
func command(image images.Image, plan config.Program) ([]string, error) {
	if plan.Package != "" {
		entry, err := images.Entry(image.RootFS, plan.Language, plan.Package, plan.Name)
		return append(entry, plan.Args...), err
	}
	if plan.Language == "python" {
		return append(images.PythonArgs(), plan.Args...), nil
	}
	return append([]string{"/usr/bin/node"}, plan.Args...), nil
}

// environment returns the variables of a server: those of its image, and over them those that the configuration sets.
func environment(image []string, server config.Server) []string {
	env := slices.DeleteFunc(slices.Clone(image), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, configured := server.Env[name]
		return configured || strings.HasPrefix(name, "PYTHON")
	})
	for name, value := range server.Env {
		env = append(env, name+"="+value.Reveal())
	}
	slices.Sort(env)
	return env
}

// mounts returns the mounts of a server, and that of the project with its script, unless that is part of another one.
func mounts(configured []config.ServerMount, project string) ([]runner.Mount, error) {
	var list []runner.Mount
	for _, m := range configured {
		list = append(list, runner.Mount{Source: m.Path, Target: m.At, Live: true, Writable: m.Writable})
	}
	seen := slices.ContainsFunc(list, func(m runner.Mount) bool {
		return m.Source == m.Target && (m.Source == project || strings.HasPrefix(project, m.Source+"/"))
	})
	if project != "" && !seen {
		list = append(list, runner.Mount{Source: project, Target: project, Live: true})
	}
	for _, m := range list {
		if real, err := filepath.EvalSymlinks(m.Source); err != nil {
			return nil, fmt.Errorf("mounting %q: %w", m.Source, err)
		} else if real != m.Source {
			return nil, fmt.Errorf("mounting %q: its path has a symbolic link: write %q", m.Source, real)
		}
	}
	return list, nil
}
