package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// vault stores the states of suspended sandboxes in files, compressed and each encrypted with a new key. A file that
// only this process needs has no name in the directory, so that it ends with the process.
type vault struct {
	dir   string
	bytes *quota.Limiter
}

func newVault(dir string) *vault {
	return &vault{dir: dir, bytes: quota.New(quota.For(quota.Suspended))}
}

// deposit is a stored state. The fields are zero as far as there is nothing to erase.
type deposit struct {
	memory   Template // the state, if it could not be written to a file
	file     *os.File
	path     string // of a file that outlives the process
	key      *age.X25519Identity
	reserved *quota.Reservation
}

const stateSuffix = ".state"

// stateName is the form of a state's file name; another never becomes part of a path.
var stateName = lazyregexp.New(`^sb-[0-9a-f]{12}\.state$`)

// store writes a state and closes it. If that fails, the deposit keeps the state in memory. The caller must erase the
// deposit in any case. A durable state has a file that outlives the process.
func (v *vault) store(account string, state Template, durable bool) (*deposit, error) {
	d, err := v.write(account, state.State(), durable)
	if err != nil {
		err = errors.Join(fmt.Errorf("storing the state of a sandbox: %w", err), d.erase())
		return &deposit{memory: state}, err
	}
	return d, state.Close()
}

func (v *vault) write(account string, state io.Reader, durable bool) (d *deposit, err error) {
	d = &deposit{}
	if d.key, err = age.GenerateX25519Identity(); err != nil {
		return d, err
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return d, err
	}
	path := filepath.Join(v.dir, newID()+stateSuffix)
	if d.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return d, err
	}
	d.path = path
	if !durable {
		if err := d.unname(); err != nil {
			return d, err
		}
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
	if durable {
		if err := d.file.Sync(); err != nil {
			return d, err
		}
	}
	return d, v.count(account, d)
}

// count reserves room for the file of a deposit.
func (v *vault) count(account string, d *deposit) error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	d.reserved, err = v.bytes.Take(account, info.Size())
	return err
}

// open returns the deposit in a file that another process has stored.
func (v *vault) open(account, name, key string) (_ *deposit, err error) {
	if !stateName.MatchString(name) {
		return nil, fmt.Errorf("%q is not the name of a state", name)
	}
	d := &deposit{}
	defer func() {
		if err != nil && d.file != nil {
			err = errors.Join(err, d.file.Close())
		}
	}()
	if d.key, err = age.ParseX25519Identity(key); err != nil {
		return nil, errors.New("the key of a state has no valid form") // the error would quote it
	}
	path := filepath.Join(v.dir, name)
	if d.file, err = os.Open(path); err != nil {
		return nil, err
	}
	d.path = path
	return d, v.count(account, d)
}

// sweep removes the states for which keep returns false.
func (v *vault) sweep(keep func(name string) bool) error {
	names, err := filepath.Glob(filepath.Join(v.dir, "*"+stateSuffix))
	var errs []error
	for _, path := range names {
		if name := filepath.Base(path); stateName.MatchString(name) && !keep(name) {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(append(errs, err)...)
}

// erase removes the file of a deposit that was not opened.
func (v *vault) erase(name string) error {
	if !stateName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a state", name)
	}
	if err := os.Remove(filepath.Join(v.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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

// unname removes the name of the file, which then ends with the process at the latest.
func (d *deposit) unname() error {
	if d.path == "" {
		return nil
	}
	path := d.path
	d.path = ""
	return os.Remove(path)
}

// erase removes the stored state.
func (d *deposit) erase() error {
	if d.memory != nil {
		return d.memory.Close()
	}
	d.reserved.Release()
	if d.file == nil {
		return nil
	}
	return errors.Join(d.unname(), d.file.Close())
}

// leave frees what the deposit takes in this process, and leaves its file to another one.
func (d *deposit) leave() error {
	if d.path == "" {
		return d.erase()
	}
	d.reserved.Release()
	return d.file.Close()
}
