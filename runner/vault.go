package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/airlock-mcp/airlock/internal/quota"
)

// vault stores the states of suspended sandboxes in files. Each is compressed, and encrypted with a key that
// exists in the memory of this process only, and has no name in its directory: what a process that was killed leaves
// is freed and worthless.
type vault struct {
	dir   string
	bytes *quota.Limiter
}

func newVault(dir string) *vault {
	return &vault{dir: dir, bytes: quota.New(quota.For(quota.Suspended))}
}

// deposit is a stored state.
type deposit struct {
	memory   Template // the state, if it could not be written to a file
	file     *os.File // without a name in the directory
	key      *age.X25519Identity
	reserved *quota.Reservation
}

// reserve takes room for a state of at most so many bytes. The error is a *quota.Refusal if there is none.
func (v *vault) reserve(account string, bytes int64) (*quota.Reservation, error) {
	return v.bytes.Take(account, bytes)
}

// store writes a state and closes it. If that fails, the deposit keeps the state in memory. The caller must erase the
// deposit in any case.
func (v *vault) store(account string, state Template) (*deposit, error) {
	d, err := v.write(account, state.State())
	if err != nil {
		err = errors.Join(fmt.Errorf("storing the state of a sandbox: %w", err), d.erase())
		return &deposit{memory: state}, err
	}
	return d, state.Close()
}

func (v *vault) write(account string, state io.Reader) (d *deposit, err error) {
	d = &deposit{}
	if d.key, err = age.GenerateX25519Identity(); err != nil {
		return d, err
	}
	path := filepath.Join(v.dir, newID()+".suspended")
	if d.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return d, err
	}
	if err := os.Remove(path); err != nil {
		return d, err
	}
	encrypted, err := age.Encrypt(d.file, d.key.Recipient())
	if err != nil {
		return d, err
	}
	compressed, err := zstd.NewWriter(encrypted, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return d, err
	}
	if _, err := io.Copy(compressed, state); err != nil {
		return d, err
	}
	if err := errors.Join(compressed.Close(), encrypted.Close()); err != nil {
		return d, err
	}
	info, err := d.file.Stat()
	if err != nil {
		return d, err
	}
	d.reserved, err = v.bytes.Take(account, info.Size())
	return d, err
}

// load returns a template of the stored state.
func (d *deposit) load(ctx context.Context, saver Saver, spec Spec) (Template, error) {
	if state := d.memory; state != nil {
		d.memory = nil // it is the caller's
		return state, nil
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	compressed, err := age.Decrypt(d.file, d.key)
	if err != nil {
		return nil, fmt.Errorf("reading the state of a sandbox: %w", err)
	}
	state, err := zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer state.Close()
	return saver.Load(ctx, spec, state)
}

// erase removes the stored state.
func (d *deposit) erase() error {
	if d.memory != nil {
		return d.memory.Close()
	}
	if d.reserved != nil {
		d.reserved.Release()
	}
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
