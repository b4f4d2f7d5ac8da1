package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

var _ runner.Saver = (*Driver)(nil)

// template is a saved sandbox: what gVisor's kernel wrote of its own state, of
// which pages the memory consists, and the pages. All three lie in memory that
// is sealed against changes.
type template struct {
	image  runner.Image
	limits runner.Limits
	mounts []runner.Mount

	state, index, pages *os.File
}

// Size is the memory that the template takes, in bytes.
func (t *template) Size() int64 {
	var size int64
	for _, f := range t.files() {
		if info, err := f.Stat(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// Close frees the template's memory, once no start uses it any more.
func (t *template) Close() error {
	var errs []error
	for _, f := range t.files() {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// files are in the order in which the kernel wants them.
func (t *template) files() []*os.File { return []*os.File{t.state, t.index, t.pages} }

// newTemplate makes the files for one.
func newTemplate(spec runner.Spec) (_ *template, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	t := &template{image: spec.Image, limits: spec.Limits, mounts: spec.Mounts}
	for _, file := range []**os.File{&t.state, &t.index, &t.pages} {
		fd, err := unix.MemfdCreate("airlock-template", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return nil, err
		}
		*file = os.NewFile(uintptr(fd), "template")
		undo.Add((*file).Close)
	}
	undo.Keep()
	return t, nil
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
	arg := map[string]any{"metadata": map[string]string{"compression": "none"}, "have_pages_file": true}
	if err := kernel.call(ctx, methodCheckpoint, arg, t.files()...); err != nil {
		return nil, errors.Join(p.explain(ctx, err), t.Close())
	}
	for _, f := range t.files() {
		if err := seal(f); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// StartFrom starts a sandbox that goes on where the template's was stopped.
func (d *Driver) StartFrom(ctx context.Context, spec runner.Spec, saved runner.Template) (_ runner.Process, err error) {
	t, ok := saved.(*template)
	if !ok {
		return nil, errors.New("starting from a template: it is another driver's")
	}
	if err := t.fits(spec); err != nil {
		return nil, err
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	p, err := d.create(ctx, spec, &undo)
	if err != nil {
		return nil, err
	}
	if err := p.restore(ctx, t); err != nil {
		return nil, err
	}
	undo.Keep()
	return p, nil
}

// fits refuses a request that the template would not answer: what was saved
// would silently win.
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
	if err := kernel.call(ctx, methodNetwork, loopback(true)); err != nil {
		return p.explain(ctx, err)
	}
	// Every reader needs an offset of its own, and may not write.
	var files []*os.File
	defer func() { closeAll(files) }()
	for _, f := range t.files() {
		own, err := reopen(f)
		if err != nil {
			return err
		}
		files = append(files, own)
	}
	arg := map[string]any{"HavePagesFile": true, "Background": true}
	if err := kernel.call(ctx, methodRestore, arg, files...); err != nil {
		return p.explain(ctx, err)
	}
	return nil
}
