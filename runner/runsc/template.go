package runsc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Saver = (*Driver)(nil)

// template is a saved sandbox, in memory that is sealed against changes.
type template struct {
	image  runner.Image
	limits runner.Limits
	mounts []runner.Mount

	// state is the file that gVisor's kernel wrote: its state, then the pages of the
	// code's memory. gVisor reads pages in a separate file with a pool of workers, each
	// with a thread, which would take a tenth of the start's CPU time.
	state *os.File
}

// Size is the memory that the template takes, in bytes.
func (t *template) Size() int64 {
	info, err := t.state.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// State returns a reader of the file.
func (t *template) State() *io.SectionReader { return io.NewSectionReader(t.state, 0, t.Size()) }

// Close frees the template's memory, once no start uses it any more.
func (t *template) Close() error { return t.state.Close() }

// newTemplate makes the file for one.
func newTemplate(spec runner.Spec) (*template, error) {
	fd, err := unix.MemfdCreate("airlock-template", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	return &template{image: spec.Image, limits: spec.Limits, mounts: spec.Mounts,
		state: os.NewFile(uintptr(fd), "template")}, nil
}

// Save stops a sandbox that waits and keeps its state as a template.
func (d *Driver) Save(ctx context.Context, started runner.Process) (_ runner.Template, err error) {
	p, ok := started.(*process)
	if !ok {
		return nil, errors.New("saving a sandbox: it is another driver's")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("saving sandbox %q: %w", p.spec.ID, err)
		}
	}()
	t, err := newTemplate(p.spec)
	if err != nil {
		return nil, err
	}
	kernel, err := p.dial()
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	defer kernel.close()
	arg := map[string]any{"metadata": map[string]string{"compression": "none"}}
	if err := kernel.call(ctx, methodCheckpoint, arg, t.state); err != nil {
		return nil, errors.Join(p.explain(ctx, err), t.Close())
	}
	if err := seal(t.state); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Format names the version of gVisor, which reads only what it has saved.
func (d *Driver) Format() string { return Name + " " + d.opts.Version }

// Load returns a template of a state that was saved before.
func (d *Driver) Load(_ context.Context, spec runner.Spec, state io.Reader) (runner.Template, error) {
	spec, err := spec.Resolve()
	if err != nil {
		return nil, err
	}
	t, err := newTemplate(spec)
	if err != nil {
		return nil, err
	}
	if err := copyState(t.state, state); err != nil {
		return nil, errors.Join(fmt.Errorf("loading a saved sandbox: %w", err), t.Close())
	}
	if err := seal(t.state); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// copyState is io.Copy in large pieces, because a state arrives in pieces of a page.
func copyState(to io.Writer, state io.Reader) error {
	piece := make([]byte, 256<<10)
	for {
		n, readErr := io.ReadFull(state, piece)
		if _, err := to.Write(piece[:n]); err != nil {
			return err
		}
		if readErr != nil {
			if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
				return nil
			}
			return readErr
		}
	}
}

// StartFrom starts a sandbox that continues from the template.
func (d *Driver) StartFrom(ctx context.Context, spec runner.Spec, state func() (runner.Template, error)) (
	_ runner.Process, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	p, err := d.create(ctx, spec, &undo)
	if err != nil {
		return nil, err
	}
	saved, err := state()
	if err != nil {
		return nil, err
	}
	t, ok := saved.(*template)
	if !ok {
		return nil, errors.New("starting from a template: it is another driver's")
	}
	if err := t.fits(spec); err != nil {
		return nil, err
	}
	if err := p.restore(ctx, t); err != nil {
		return nil, err
	}
	undo.Keep()
	return p, nil
}

// fits returns an error if spec differs from the template in something that the saved
// state would silently override.
func (t *template) fits(spec runner.Spec) error {
	spec, err := spec.Resolve()
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(spec.Image, t.image) || spec.Limits != t.limits || !reflect.DeepEqual(spec.Mounts, t.mounts) {
		return errors.New("starting from a template: it is of another image, other limits or other mounts")
	}
	return nil
}

// restore lets the kernel load the template and go on.
func (p *process) restore(ctx context.Context, t *template) error {
	kernel, err := p.dial()
	if err != nil {
		return p.explain(ctx, err)
	}
	defer kernel.close()
	if err := p.setNetwork(ctx, kernel, true); err != nil {
		return p.explain(ctx, err)
	}
	// Every reader needs a separate file offset and read-only access.
	state, err := reopen(t.state)
	if err != nil {
		return err
	}
	defer state.Close()
	if err := kernel.call(ctx, methodRestore, map[string]any{}, state); err != nil {
		return p.explain(ctx, err)
	}
	return nil
}
