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

func (t *text) Size() int64      { return int64(len(t.data)) }
func (t *text) State() io.Reader { return bytes.NewReader(t.data) }
func (t *text) Close() error     { t.closed = true; return nil }

// A stored state cannot be read in its directory, takes little room, and comes back as it was.
func TestVault(t *testing.T) {
	dir := t.TempDir()
	v := newVault(dir)
	secret := rand.Text()
	state := &text{data: bytes.Repeat([]byte(secret+"\n"), 100_000)}
	d, err := v.store("ann", state, false)
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
	v := newVault("/dev/null/no directory")
	state := &text{data: []byte("state")}
	d, err := v.store("ann", state, false)
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

// loading is a driver that loads texts.
type loading struct{ Saver }

func (loading) Load(_ context.Context, _ Spec, state io.Reader) (Template, error) {
	data, err := io.ReadAll(state)
	return &text{data: data}, err
}
