package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/quota"
)

// text is a template in memory.
type text struct {
	data   []byte
	closed bool
}

func (t *text) Size() int64 { return int64(len(t.data)) }
func (t *text) State() *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(t.data), 0, t.Size())
}
func (t *text) Close() error { t.closed = true; return nil }

// A stored state cannot be read in its directory, takes little room, and comes back as it was.
func TestVault(t *testing.T) {
	dir := t.TempDir()
	v := newVault(dir, 0)
	secret := rand.Text()
	state := &text{data: bytes.Repeat([]byte(secret+"\n"), 100_000)}
	d, err := v.store("ann", state, nil, false)
	if err != nil || !state.closed {
		t.Fatalf("%v, closed %v", err, state.closed)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) > 0 {
		t.Errorf("%v, %v: want no name", names, err)
	}
	file, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", d.file.Fd()))
	if err != nil || bytes.Contains(file, []byte(secret)) {
		t.Errorf("%v: the secret can be read", err)
	}
	if used, _ := v.bytes.Load(); used != len(file) || used > len(state.data)/10 {
		t.Errorf("%d bytes are counted, %d used, of %d", used, len(file), len(state.data))
	}
	got, err := d.load(t.Context(), loading{}, Spec{})
	if err != nil || !bytes.Equal(got.(*text).data, state.data) {
		t.Errorf("%v: the state differs", err)
	}
	// A changed file is refused, wherever it was changed.
	for _, at := range []int{len(file) / 2, len(file) - 1} {
		if _, err := d.file.WriteAt([]byte{file[at] ^ 1}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.load(t.Context(), loading{}, Spec{}); err == nil {
			t.Errorf("a state changed at %d was loaded", at)
		}
		if _, err := d.file.WriteAt(file[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.file.Truncate(int64(len(file) - 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.load(t.Context(), loading{}, Spec{}); err == nil {
		t.Error("a truncated state was loaded")
	}
	if err := d.erase(); err != nil {
		t.Error(err)
	}
	if used, _ := v.bytes.Load(); used != 0 {
		t.Errorf("%d bytes are counted after the end", used)
	}
}

// A state that cannot be written stays in memory; one that has no room is refused before it is made.
func TestVaultWithoutRoom(t *testing.T) {
	v := newVault("/dev/null/no directory", 0)
	state := &text{data: []byte("state")}
	d, err := v.store("ann", state, nil, false)
	if err == nil || state.closed {
		t.Fatalf("%v, closed %v: want an error, and the state", err, state.closed)
	}
	got, err := d.load(t.Context(), loading{}, Spec{})
	if err != nil || got != Template(state) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := d.erase(); err != nil || state.closed {
		t.Errorf("%v: what was loaded is the caller's", err)
	}
	if _, err := v.bytes.Take("ann", 1<<40); !errors.As(err, new(*quota.Refusal)) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A state is stored as its difference to the template that its sandbox was started from, and another process restores
// it with the file of the template, which goes with the last state that needs it (issue 29).
func TestVaultStoresDifferences(t *testing.T) {
	dir := t.TempDir()
	v := newVault(dir, 0)
	content := make([]byte, 1<<20)
	rand.Read(content)
	template := &sharedTemplate{Template: &text{data: content}}
	var saved []Saved
	var states [][]byte
	for i := range 2 {
		state := bytes.Clone(content)
		state[i*5000] ^= 1
		states = append(states, state)
		like, err := v.baseOf(template)
		if err != nil {
			t.Fatal(err)
		}
		d, err := v.store("ann", &text{data: bytes.Clone(state)}, like, true)
		if err := errors.Join(err, like.release(false)); err != nil {
			t.Fatal(err)
		}
		saved = append(saved, Saved{State: d.name(), Key: d.key.String(), Base: d.base.saved()})
		if info, err := d.file.Stat(); err != nil || info.Size() > 10_000 {
			t.Errorf("%v, %v: want a small file", info, err)
		}
		got, err := d.load(t.Context(), loading{}, Spec{})
		if err != nil || !bytes.Equal(got.(*text).data, state) {
			t.Errorf("%v: the state differs", err)
		}
		defer func() {
			if err := d.leave(); err != nil {
				t.Error(err)
			}
		}()
	}
	if *saved[0].Base != *saved[1].Base {
		t.Error("the states have different bases")
	}
	// The next process has another template.
	v = newVault(dir, 0)
	other := saved[0]
	other.Base = &SavedBase{File: saved[1].State, Key: saved[1].Key, Digest: saved[0].Base.Digest}
	for name, wrong := range map[string]Saved{
		"a base that is another file":  other,
		"a base that is the state":     {State: saved[0].State, Key: saved[0].Key, Base: other.Base},
		"a base with another digest":   withBase(saved[0], func(b *SavedBase) { b.Digest = "0" + b.Digest[1:] + "0" }),
		"a base with another key":      withBase(saved[0], func(b *SavedBase) { b.Key = saved[0].Key }),
		"a base outside the directory": withBase(saved[0], func(b *SavedBase) { b.File = "../" + b.File }),
		"no base":                      {State: saved[0].State, Key: saved[0].Key},
	} {
		d, err := newVault(dir, 0).restore("ann", wrong)
		if err != nil {
			continue
		}
		got, err := d.load(t.Context(), loading{}, Spec{})
		if err == nil && bytes.Equal(got.(*text).data, states[0]) || err == nil && wrong.Base != nil {
			t.Errorf("%s: a state was loaded", name)
		}
	}
	// A run that cannot go on leaves the base to the others.
	if err := v.sweep(saved); err != nil {
		t.Fatal(err)
	}
	if err := v.erase(Saved{State: "sb-000000000000.state", Base: saved[0].Base}); err != nil {
		t.Fatal(err)
	}
	for i, s := range saved {
		d, err := v.restore("ann", s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.load(t.Context(), loading{}, Spec{})
		if err != nil || !bytes.Equal(got.(*text).data, states[i]) {
			t.Errorf("%v: the state differs", err)
		}
		defer func() {
			if err := d.erase(); err != nil {
				t.Error(err)
			}
			names, err := filepath.Glob(filepath.Join(dir, "*.base"))
			if err != nil || (i == 0) != (len(names) == 0) {
				t.Errorf("%v, %v are left after the end of state %d", names, err, i)
			}
		}()
	}
}

func withBase(saved Saved, change func(*SavedBase)) Saved {
	b := *saved.Base
	change(&b)
	saved.Base = &b
	return saved
}

// loading is a driver that loads texts.
type loading struct{ Saver }

func (loading) Load(_ context.Context, _ Spec, state io.Reader) (Template, error) {
	data, err := io.ReadAll(state)
	return &text{data: data}, err
}

// preparing is a driver that prepares a sandbox and reads its state at the same time only.
type preparing struct {
	loading
	begun, reading chan struct{}
	broken         error // of the state
	loaded         *text
}

func (p *preparing) Load(ctx context.Context, spec Spec, state io.Reader) (Template, error) {
	close(p.reading)
	select {
	case <-p.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.broken != nil {
		return nil, p.broken
	}
	t, err := p.loading.Load(ctx, spec, state)
	p.loaded, _ = t.(*text)
	return t, err
}

func (p *preparing) StartFrom(ctx context.Context, _ Spec, state func() (Template, error)) (Process, error) {
	close(p.begun)
	select {
	case <-p.reading:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, err := state()
	return nil, err
}

// A state is read while the sandbox that continues from it is prepared. Nothing is begun if it cannot be read, and
// nothing is left of it (issue 29).
func TestStatesAreReadWhileSandboxesStart(t *testing.T) {
	for _, broken := range []error{nil, errors.New("broken")} {
		v := newVault(t.TempDir(), 0)
		d, err := v.store("ann", &text{data: []byte("state")}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		driver, begun := &preparing{begun: make(chan struct{}), reading: make(chan struct{}), broken: broken}, false
		_, err = (&Runner{}).startSaved(t.Context(), driver, Spec{}, d, func() error { begun = true; return nil })
		if !errors.Is(err, broken) || begun != (broken == nil) {
			t.Errorf("got %v and begun %v, want %v", err, begun, broken)
		}
		if broken == nil && !driver.loaded.closed {
			t.Error("what was read of the state is left")
		}
		if err := d.erase(); err != nil {
			t.Error(err)
		}
	}
}
