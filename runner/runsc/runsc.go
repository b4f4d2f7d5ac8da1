// Package runsc is the default driver: it runs each sandbox with the runsc
// program of gVisor, without a daemon, as root or as an ordinary user.
package runsc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// Name is the driver's name in the configuration.
const Name = "runsc"

// Options configure a Driver. Path and Logger are required.
type Options struct {
	Path   string       // of the runsc program
	Logger *slog.Logger // for what is weaker than it could be

	// Version is the module version of gVisor that the programs must be built
	// from, as `go version -m` prints it; "" means gvisor.Version.
	Version string
	// Unenforced allows sandboxes without the limits that this host cannot
	// enforce. If it is false, Check and Start return an error on such a host.
	Unenforced bool
}

// Driver makes sandboxes with runsc.
type Driver struct {
	opts  Options
	host  *bounds.Host
	files *fileSystems
}

var _ runner.Driver = (*Driver)(nil)

// New returns a driver after it has looked at the program and at the host's
// control groups. It starts nothing.
func New(opts *Options) (*Driver, error) {
	if opts == nil || opts.Path == "" || opts.Logger == nil {
		return nil, errors.New("the runsc driver needs a program and a logger")
	}
	d := &Driver{opts: *opts, host: bounds.Find(), files: &fileSystems{}}
	path, err := filepath.Abs(opts.Path)
	if err != nil {
		return nil, err
	}
	d.opts.Path = path
	d.opts.Version = cmp.Or(opts.Version, gvisor.Version)
	if err := gvisor.CheckVersion(Name, d.opts.Path, d.opts.Version); err != nil {
		return nil, err
	}
	if _, err := hostUser(""); err != nil {
		return nil, fmt.Errorf("sandboxes cannot be someone else: %w: run Airlock outside of it", err)
	}
	if lack := d.host.Lack(); lack != nil && d.opts.Unenforced {
		d.opts.Logger.WarnContext(context.Background(), "sandboxes run without some of their limits",
			slog.Any(telemetry.KeyError, lack))
	}
	return d, nil
}

// hostUser returns the user of a sandbox's processes on the host. For an ordinary user
// that is the caller. Root assigns each sandbox a dedicated user if its user namespace
// has such a range, and otherwise nobody (65534).
func hostUser(id string) (posture.User, error) {
	if uid := os.Geteuid(); uid != 0 {
		return posture.User{UID: uint32(uid), GID: uint32(os.Getegid())}, nil
	}
	users, err := posture.UsersOf(os.Getpid())
	if err != nil {
		return posture.User{}, err
	}
	return users.Pick(id)
}

// Name is "runsc".
func (d *Driver) Name() string { return Name }

// Unenforced returns why this host cannot enforce every limit, or nil if it can.
func (d *Driver) Unenforced() error { return d.host.Lack() }

// Start starts a sandbox. Files of gVisor's own go to the spec's StateDir.
func (d *Driver) Start(ctx context.Context, spec runner.Spec) (runner.Process, error) {
	return cleanup.Build(func(undo *cleanup.Stack) (runner.Process, error) {
		p, err := d.create(ctx, spec, undo)
		if err != nil {
			return nil, err
		}
		return p, p.run(ctx)
	})
}

// create starts gVisor's kernel, with everything around it but the program.
func (d *Driver) create(ctx context.Context, spec runner.Spec, undo *cleanup.Stack) (*process, error) {
	if lack := d.host.Lack(); lack != nil && !d.opts.Unenforced {
		return nil, lack
	}
	spec, err := spec.Resolve()
	if err != nil {
		return nil, err
	}
	config, directories, err := configure(spec)
	if err != nil {
		return nil, err
	}
	host, err := hostUser(spec.ID)
	if err != nil {
		return nil, err
	}
	p := &process{Kernel: bounds.NewKernel(), spec: spec, host: host, bound: d.host, watched: make(chan struct{})}
	undo.Add(p.Close)
	// To enter a new control group of version 1, a thread waits ten milliseconds for others.
	grouped := make(chan error, 1)
	go func() {
		var err error
		p.Group, err = d.host.New(spec)
		grouped <- err
	}()
	given, err := p.prepare(d.files, config, directories)
	if err := errors.Join(<-grouped, err); err != nil {
		return nil, err
	}
	return p, p.boot(ctx, d.command(p, given))
}

// Close forgets what the driver keeps in memory between sandboxes, of which
// none may be left.
func (d *Driver) Close() { d.files.close() }
