package runner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/internal/delta"
)

// base is a template that states are stored as differences to. Its content is in memory, in a file, or in both.
type base struct {
	vault  *vault
	digest string // of the content

	slow sync.Mutex // held while the file is written or read

	// Guarded by vault.mu.
	users   int             // states and sandboxes that need it
	left    bool            // the file is for another process
	content *sharedTemplate // in use by the base; nil if it is only in the file
	file    *deposit        // nil if it is only in memory
}

// SavedBase is the template that a state is stored as the difference to.
type SavedBase struct {
	File   string // its name, in Options.SuspendDir
	Key    string // decrypts the file; a secret
	Digest string // of the content
}

// maxContents is how many bases with a file are also kept in memory.
const maxContents = 4

// baseOf returns the base of sandboxes that were started from a template; nil if the template is nil or was retired.
// The caller must release it.
func (v *vault) baseOf(t *sharedTemplate) (*base, error) {
	if t == nil || !t.use() {
		return nil, nil
	}
	digest, err := t.digest()
	if err != nil {
		return nil, errors.Join(err, t.done())
	}
	v.mu.Lock()
	b := v.bases[digest]
	known := b != nil
	if !known {
		b = &base{vault: v, digest: digest}
		v.bases[digest] = b
	}
	b.users++
	if b.content == nil {
		v.keepLocked(b, t)
		known = false
	}
	v.mu.Unlock()
	if known {
		err = t.done()
	}
	return b, err
}

// references are templates that only serve as bases: of sandboxes that were not started from one.
type references struct {
	mu   sync.Mutex // held while one is made
	made map[reference]*sharedTemplate
}

// reference is what a reference is like: a guest that has loaded ahead what code needs has other memory than one that
// has not.
type reference struct {
	image string // its digest
	when  moment
}

// baseFor returns what the state of a sandbox is stored as the difference to, or nil. The caller must release it.
func (r *Runner) baseFor(ctx context.Context, s *Sandbox, b *body) (*base, error) {
	if like := b.base.Load(); like != nil {
		return like.hold(), nil
	}
	if like, err := r.vault.baseOf(s.origin); like != nil || err != nil {
		return like, err
	}
	r.references.mu.Lock()
	defer r.references.mu.Unlock()
	key := reference{s.req.Image.Digest, s.when}
	t := r.references.made[key]
	if t == nil {
		made, err := r.makeTemplate(ctx, s.req, s.when)
		if err != nil {
			return nil, err
		}
		t = &sharedTemplate{Template: made}
		r.references.made[key] = t
	}
	return r.vault.baseOf(t)
}

// close frees the references.
func (r *references) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, t := range r.made {
		errs = append(errs, t.retire())
	}
	return errors.Join(errs...)
}

// savedBase returns the base that another process has stored. The caller must release it.
func (v *vault) savedBase(saved SavedBase) (*base, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.bases[saved.Digest]
	if b == nil {
		file, err := v.open("", saved.File, saved.Key)
		if err != nil {
			return nil, err
		}
		b = &base{vault: v, digest: saved.Digest, file: file}
		v.bases[saved.Digest] = b
	}
	b.users++
	return b, nil
}

// keepLocked keeps a template that is in use as the content of a base, and forgets older ones.
func (v *vault) keepLocked(b *base, t *sharedTemplate) {
	b.content = t
	v.contents = append(v.contents, b)
	for i := 0; len(v.contents) > maxContents && i < len(v.contents)-1; {
		if old := v.contents[i]; old.file == nil {
			i++
		} else {
			v.forgetLocked(old)
		}
	}
}

// forgetLocked frees the memory of a base.
func (v *vault) forgetLocked(b *base) {
	if b.content != nil {
		_ = b.content.done() // it is memory, whose end cannot fail
		b.content = nil
		v.contents = slices.DeleteFunc(v.contents, func(other *base) bool { return other == b })
	}
}

// hold returns the base, which may be nil, for another state or sandbox, which must release it.
func (b *base) hold() *base {
	if b == nil {
		return nil
	}
	b.vault.mu.Lock()
	defer b.vault.mu.Unlock()
	b.users++
	return b
}

// release ends the use of a base, which may be nil. Nothing is left of it after the last use, apart from its file if
// leave is set: then another process may need it.
func (b *base) release(leave bool) error {
	if b == nil {
		return nil
	}
	v := b.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	b.left = b.left || leave
	if b.users--; b.users > 0 {
		return nil
	}
	delete(v.bases, b.digest)
	v.forgetLocked(b)
	switch {
	case b.file == nil:
		return nil
	case b.left:
		return b.file.leave()
	}
	return b.file.erase()
}

// save stores the content in a file, once.
func (b *base) save() error {
	b.slow.Lock()
	defer b.slow.Unlock()
	if b.saved() != nil {
		return nil
	}
	content, err := b.openSlow()
	if err != nil {
		return err
	}
	// No account has it alone.
	file, err := b.vault.write("", baseSuffix, true, func(w io.Writer) error {
		_, err := io.Copy(w, content.template().State())
		return err
	})
	if err = errors.Join(err, content.done()); err != nil {
		return errors.Join(fmt.Errorf("storing a template: %w", err), file.erase())
	}
	b.vault.mu.Lock()
	defer b.vault.mu.Unlock()
	b.file = file
	return nil
}

// saved returns what another process needs to read the file, or nil without a file.
func (b *base) saved() *SavedBase {
	if b == nil {
		return nil
	}
	b.vault.mu.Lock()
	defer b.vault.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return &SavedBase{File: b.file.name(), Key: b.file.key.String(), Digest: b.digest}
}

// open returns the content in memory. The caller must end its use with done.
func (b *base) open() (*sharedTemplate, error) {
	b.slow.Lock()
	defer b.slow.Unlock()
	return b.openSlow()
}

// openSlow is open with b.slow held.
func (b *base) openSlow() (*sharedTemplate, error) {
	v := b.vault
	v.mu.Lock()
	if b.content != nil {
		defer v.mu.Unlock()
		return b.content.again(), nil
	}
	file := b.file
	v.mu.Unlock()
	var text []byte
	err := file.read(func(stored io.Reader) (err error) {
		text, err = io.ReadAll(stored)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the template of a suspended sandbox: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != b.digest {
		return nil, errors.New("reading the template of a suspended sandbox: the template has changed")
	}
	t := &sharedTemplate{Template: memory(text), users: 1}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keepLocked(b, t)
	return t.again(), t.retire()
}

// encode writes the difference of a state to the base.
func (b *base) encode(w io.Writer, state io.Reader) error {
	content, err := b.open()
	if err != nil {
		return err
	}
	compared, err := content.comparable()
	if err == nil {
		err = compared.Encode(w, state)
	}
	return errors.Join(err, content.done())
}

// decode has read called with the state whose difference to the base is given.
func (b *base) decode(difference io.Reader, read func(io.Reader) error) error {
	content, err := b.open()
	if err != nil {
		return err
	}
	return errors.Join(read(delta.Decode(content.template().State(), difference)), content.done())
}

// memory is a template that was read from a file.
type memory []byte

// Size implements Template.
func (m memory) Size() int64 { return int64(len(m)) }

// State implements Template.
func (m memory) State() *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(m), 0, m.Size())
}

// Close implements Template.
func (m memory) Close() error { return nil }
