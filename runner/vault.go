package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/store"
)

// vault stores the states of suspended sandboxes in files, compressed and each encrypted with a new key. A file that
// only this process needs has no name in the directory, so that it ends with the process. The state of a sandbox that
// was started from a template is stored as its difference to it.
type vault struct {
	dir   string
	bytes *quota.Limiter

	mu       sync.Mutex
	bases    map[string]*base // by digest
	contents []*base          // those in memory, oldest first
	claims   map[string]*base // of states that are neither restored nor erased yet, by their names

	// A new coder takes 10 to 20 MB.
	compressors, decompressors sync.Pool // of *zstd.Encoder and *zstd.Decoder
}

// newVault returns the vault in a directory. size is the maximum of all states in bytes; 0 means the default.
func newVault(dir string, size int64) *vault {
	limit := quota.ForSuspended(cmp.Or(size, quota.For(quota.Suspended).Total))
	return &vault{dir: dir, bytes: quota.New(limit), bases: map[string]*base{}, claims: map[string]*base{}}
}

// deposit is a stored state. The fields are zero as far as there is nothing to erase.
type deposit struct {
	vault    *vault
	memory   Template // the state, if it could not be written to a file
	file     *os.File
	path     string // of a file that outlives the process
	key      *age.X25519Identity
	base     *base // that the file has the difference to; nil if it has the state itself
	reserved *quota.Reservation
}

// The ends of the names of the vault's files.
const (
	stateSuffix = ".state" // the state of one sandbox
	baseSuffix  = ".base"  // a template that states are differences to
)

// fileName is the form of the names in the directory; another never becomes part of a path.
var fileName = lazyregexp.New(`^sb-[0-9a-f]{12}\.(state|base)$`)

// store writes a state and closes it. If that fails, the deposit keeps the state in memory. The caller must erase the
// deposit in any case. A durable state has a file that outlives the process. like is the base of the state, or nil.
func (v *vault) store(account string, state Template, like *base, durable bool) (*deposit, error) {
	d, err := v.storeDifference(account, state, like, durable)
	if err != nil {
		err = errors.Join(fmt.Errorf("storing the state of a sandbox: %w", err), d.erase())
		return &deposit{vault: v, memory: state}, err
	}
	return d, state.Close()
}

func (v *vault) storeDifference(account string, state Template, like *base, durable bool) (*deposit, error) {
	if like == nil {
		return v.write(account, stateSuffix, durable, func(w io.Writer) error {
			_, err := io.Copy(w, state.State())
			return err
		})
	}
	if durable {
		if err := like.save(); err != nil {
			return &deposit{vault: v}, err
		}
	}
	d, err := v.write(account, stateSuffix, durable, func(w io.Writer) error { return like.encode(w, state.State()) })
	d.base = like.hold()
	return d, err
}

// write stores what content writes. The caller must erase the deposit, even after an error.
func (v *vault) write(account, suffix string, named bool, content func(io.Writer) error) (d *deposit, err error) {
	d = &deposit{vault: v}
	if d.key, err = age.GenerateX25519Identity(); err != nil {
		return d, err
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return d, err
	}
	path := filepath.Join(v.dir, newID()+suffix)
	if d.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return d, err
	}
	d.path = path
	if !named {
		if err := d.unname(); err != nil {
			return d, err
		}
	}
	encrypted, err := age.Encrypt(d.file, d.key.Recipient())
	if err != nil {
		return d, err
	}
	compressed, err := v.compressor(encrypted)
	if err != nil {
		return d, err
	}
	if err := errors.Join(content(compressed), compressed.Close(), encrypted.Close()); err != nil {
		return d, err
	}
	compressed.Reset(nil)
	v.compressors.Put(compressed)
	if named {
		if err := d.file.Sync(); err != nil {
			return d, err
		}
	}
	return d, v.count(account, d)
}

// compressor returns a compressor, which the caller puts back when it is closed.
func (v *vault) compressor(w io.Writer) (*zstd.Encoder, error) {
	if kept, ok := v.compressors.Get().(*zstd.Encoder); ok {
		kept.Reset(w)
		return kept, nil
	}
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
}

// decompressor returns a decompressor, which the caller puts back.
func (v *vault) decompressor(r io.Reader) (*zstd.Decoder, error) {
	if kept, ok := v.decompressors.Get().(*zstd.Decoder); ok {
		return kept, kept.Reset(r)
	}
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
}

// count reserves bytes for the file of a deposit.
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
	if !fileName.MatchString(name) {
		return nil, fmt.Errorf("%q is not the name of a state", name)
	}
	d := &deposit{vault: v}
	defer func() {
		if err != nil && d.file != nil {
			err = errors.Join(err, d.file.Close())
		}
	}()
	if d.key, err = age.ParseX25519Identity(key); err != nil {
		return nil, errors.New("the key of a state has no valid form") // the error would quote it
	}
	path := filepath.Join(v.dir, name)
	if d.file, err = store.Open(path); err != nil {
		return nil, err
	}
	d.path = path
	encrypted, err := age.Decrypt(d.file, d.key)
	if err == nil {
		_, err = io.Copy(io.Discard, encrypted) // so that a changed file is refused before anything is done for it
	}
	if err != nil {
		return nil, fmt.Errorf("the stored state was changed: %w", err)
	}
	// A state that was stored is not refused: the setting may have changed.
	if err := v.count(account, d); err != nil && !errors.As(err, new(*quota.Refusal)) {
		return nil, err
	}
	return d, nil
}

// readFile returns the content of a file as it is stored.
func (v *vault) readFile(name string) ([]byte, error) {
	if !fileName.MatchString(name) {
		return nil, fmt.Errorf("%q is not the name of a state", name)
	}
	return store.ReadFile(filepath.Join(v.dir, name))
}

// writeFile stores a file that another process has read, unless it exists.
func (v *vault) writeFile(name string, content func() ([]byte, error)) error {
	if !fileName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a state", name)
	}
	path := filepath.Join(v.dir, name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stored, err := content()
	if err == nil {
		err = os.MkdirAll(v.dir, 0o700)
	}
	if err != nil {
		return err
	}
	return store.WriteFile(path, stored, 0o600)
}

// restore returns the deposit that another process has left.
func (v *vault) restore(account string, saved Saved) (*deposit, error) {
	d, err := v.open(account, saved.State, saved.Key)
	if err != nil {
		return nil, err
	}
	if d.base = v.claimed(saved.State); d.base == nil && saved.Base != nil {
		if d.base, err = v.savedBase(*saved.Base); err != nil {
			return nil, errors.Join(err, d.leave())
		}
	}
	return d, nil
}

// sweep removes all files but those given, and claims the bases of those.
func (v *vault) sweep(keep []Saved) error {
	names := map[string]bool{}
	for _, saved := range keep {
		names[saved.State] = true
		if saved.Base == nil {
			continue
		}
		names[saved.Base.File] = true
		if like, err := v.savedBase(*saved.Base); err == nil { // otherwise restore returns the error
			v.mu.Lock()
			v.claims[saved.State] = like
			v.mu.Unlock()
		}
	}
	paths, err := filepath.Glob(filepath.Join(v.dir, "sb-*"))
	var errs []error
	for _, path := range paths {
		if name := filepath.Base(path); fileName.MatchString(name) && !names[name] {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(append(errs, err)...)
}

// claimed returns the base that sweep has claimed for a state, once, or nil.
func (v *vault) claimed(state string) *base {
	v.mu.Lock()
	defer v.mu.Unlock()
	like := v.claims[state]
	delete(v.claims, state)
	return like
}

// erase removes the files of a deposit that was not opened.
func (v *vault) erase(saved Saved) error {
	err := v.remove(saved.State)
	like := v.claimed(saved.State)
	if like == nil && saved.Base != nil && !v.has(saved.Base.Digest) { // no other state needs it, or it cannot be read
		err = errors.Join(err, v.remove(saved.Base.File))
	}
	return errors.Join(err, like.release(false))
}

// has reports whether a base is known.
func (v *vault) has(digest string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bases[digest] != nil
}

// remove removes a file, if it exists.
func (v *vault) remove(name string) error {
	if !fileName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a state", name)
	}
	if err := os.Remove(filepath.Join(v.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// name returns the name of the file in the directory; empty if it has none.
func (d *deposit) name() string {
	if d.path == "" {
		return ""
	}
	return filepath.Base(d.path)
}

// load returns a template of the stored state.
func (d *deposit) load(ctx context.Context, saver Saver, spec Spec) (state Template, err error) {
	if state := d.memory; state != nil {
		d.memory = nil // it is the caller's
		return state, nil
	}
	load := func(stored io.Reader) (err error) {
		state, err = saver.Load(ctx, spec, stored)
		return err
	}
	err = d.read(func(stored io.Reader) error {
		if d.base == nil {
			return load(stored)
		}
		return d.base.decode(stored, load)
	})
	if err != nil && state != nil {
		err, state = errors.Join(err, state.Close()), nil
	}
	return state, err
}

// read has a function called with what was stored.
func (d *deposit) read(content func(io.Reader) error) error {
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	compressed, err := age.Decrypt(d.file, d.key)
	if err != nil {
		return fmt.Errorf("reading the state of a sandbox: %w", err)
	}
	stored, err := d.vault.decompressor(compressed)
	if err != nil {
		return err
	}
	defer func() {
		_ = stored.Reset(nil) // it forgets the file, and no error is possible
		d.vault.decompressors.Put(stored)
	}()
	return content(stored)
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
	err := d.base.release(false)
	if d.file == nil {
		return err
	}
	return errors.Join(err, d.unname(), d.file.Close())
}

// leave frees what the deposit takes in this process, and leaves its file to another one.
func (d *deposit) leave() error {
	if d.path == "" {
		return d.erase()
	}
	d.reserved.Release()
	return errors.Join(d.base.release(true), d.file.Close())
}
