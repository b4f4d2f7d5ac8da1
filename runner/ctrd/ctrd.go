// Package ctrd is the driver for containerd 2. A containerd daemon starts each sandbox
// with gVisor's shim (containerd-shim-runsc-v1). It is meant for hosts on which a daemon
// manages all containers. It needs root, as the daemon does.
package ctrd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// Name is the driver's name in the configuration.
const Name = "containerd"

// Options configure a Driver. All fields except the last three are required. The daemon
// must run on the same host, because it uses the same paths.
type Options struct {
	Address string       // of the daemon's socket, a path
	Shim    string       // of the program containerd-shim-runsc-v1
	Runsc   string       // of the runsc that Airlock builds
	Logger  *slog.Logger // for what is weaker than it could be

	// Snapshotter stores the images; "" means overlayfs if the daemon has it,
	// and native otherwise.
	Snapshotter string
	// Version is the module version of gVisor that the programs must be built
	// from, as `go version -m` prints it; "" means gvisor.Version.
	Version string
	// Unenforced allows sandboxes without the limits that this host cannot
	// enforce. If it is false, Check and Start return an error on such a host.
	Unenforced bool
}

// Driver makes sandboxes with containerd.
type Driver struct {
	opts   Options
	host   *bounds.Host
	daemon *daemon

	mu     sync.Mutex
	images map[string]string // by digest: the snapshot that a sandbox's root is a view of
	// checked are the states of the snapshots, by the image's digest, when their files were verified.
	checked map[string]digest.Digest
}

var _ runner.Driver = (*Driver)(nil)

// New returns a driver after it has looked at the programs, the daemon and the
// host's control groups. It starts nothing, refuses what is not as it must be, and
// removes what the daemon remembers of sandboxes from before the host was
// started anew. A driver that is no longer needed must be closed.
func New(ctx context.Context, opts *Options) (*Driver, error) {
	if opts == nil || opts.Address == "" || opts.Shim == "" || opts.Runsc == "" || opts.Logger == nil {
		return nil, errors.New("the containerd driver needs a daemon's address, a shim, a runsc and a logger")
	}
	d := &Driver{opts: *opts, host: bounds.Find(), images: map[string]string{},
		checked: map[string]digest.Digest{}}
	d.opts.Version = cmp.Or(opts.Version, gvisor.Version)
	if os.Geteuid() != 0 {
		return nil, errors.New("the containerd driver needs root, to prove and to limit what the daemon starts")
	}
	if err := d.checkPrograms(); err != nil {
		return nil, err
	}
	if lack := d.host.Lack(); lack != nil && opts.Unenforced {
		opts.Logger.WarnContext(ctx, "sandboxes run without some of their limits", slog.Any(telemetry.KeyError, lack))
	}
	daemon, err := connect(ctx, opts.Address, opts.Snapshotter)
	if err != nil {
		return nil, err
	}
	d.daemon = daemon
	if err := daemon.removeFormer(ctx); err != nil {
		return nil, errors.Join(err, daemon.client.Close())
	}
	return d, nil
}

// checkPrograms refuses programs of another version, and a runsc without what
// Airlock's own build adds to it.
func (d *Driver) checkPrograms() error {
	for name, path := range map[string]*string{"shim": &d.opts.Shim, "runsc": &d.opts.Runsc} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
		if err := gvisor.CheckVersion(name, abs, d.opts.Version); err != nil {
			return err
		}
	}
	return gvisor.CheckBuild(d.opts.Runsc)
}

// Name is "containerd".
func (d *Driver) Name() string { return Name }

// Unenforced returns why this host cannot enforce every limit, or nil if it can.
func (d *Driver) Unenforced() error { return d.host.Lack() }

// Close ends the connection to the daemon. No sandbox may be left.
func (d *Driver) Close() error { return d.daemon.client.Close() }

// Check looks whether the daemon is what it must be.
func (d *Driver) Check(ctx context.Context) error {
	_, err := d.daemon.look(ctx, d.opts.Snapshotter)
	return err
}

// Start starts a sandbox on a view of its image, which is imported first where
// the daemon does not have it.
func (d *Driver) Start(ctx context.Context, spec runner.Spec) (runner.Process, error) {
	if lack := d.host.Lack(); lack != nil && !d.opts.Unenforced {
		return nil, lack
	}
	if spec.Broker == nil {
		return nil, runner.ErrNoPrograms
	}
	return cleanup.Build(func(undo *cleanup.Stack) (runner.Process, error) {
		p, err := d.create(ctx, spec, undo)
		if err != nil {
			return nil, err
		}
		return p, p.run(ctx)
	})
}

// create has the daemon make a sandbox, with everything around it, whose guest
// does not run yet.
func (d *Driver) create(ctx context.Context, spec runner.Spec, undo *cleanup.Stack) (*process, error) {
	if spec.Network != nil {
		return nil, runner.ErrNoNetwork
	}
	if spec.User != (runner.User{}) || slices.ContainsFunc(spec.Mounts, func(m runner.Mount) bool { return m.Live }) {
		return nil, runner.ErrNoPrograms
	}
	spec, err := spec.Resolve()
	if err != nil {
		return nil, err
	}
	p := &process{Kernel: bounds.NewKernel(), daemon: d.daemon, spec: spec, bound: d.host}
	undo.Add(p.abandon)
	if err := p.prepare(d); err != nil {
		return nil, err
	}
	if p.Group, err = d.host.New(spec); err != nil {
		return nil, err
	}
	if err := writeRecord(spec, d.opts.Address); err != nil {
		return nil, err
	}
	if err := d.daemon.lease(ctx, spec); err != nil {
		return nil, err
	}
	mounts, err := d.imageRoot(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := d.daemon.container(ctx, p); err != nil {
		return nil, fmt.Errorf("making the container: %w", err)
	}
	return p, p.boot(ctx, d.opts.Shim, mounts)
}
