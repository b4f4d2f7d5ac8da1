package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"

	"github.com/airlock-mcp/airlock/internal/delta"
)

// sharedTemplate is a template with its users: it is closed when it has been
// retired and the last start from it is over.
type sharedTemplate struct {
	Template

	mu      sync.Mutex
	users   int
	retired bool

	comparing sync.Mutex
	sum       string      // of the content; empty if not known yet
	compared  *delta.Base // nil if not made yet
}

// use reports whether the template may be used; then done must follow.
func (t *sharedTemplate) use() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return false
	}
	t.users++
	return true
}

// again adds a use for a caller that has one.
func (t *sharedTemplate) again() *sharedTemplate {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
	return t
}

// digest returns the SHA-256 of the content. The template must be in use.
func (t *sharedTemplate) digest() (string, error) {
	t.comparing.Lock()
	defer t.comparing.Unlock()
	if t.sum == "" {
		sum := sha256.New()
		if _, err := io.Copy(sum, t.Template.State()); err != nil {
			return "", err
		}
		t.sum = hex.EncodeToString(sum.Sum(nil))
	}
	return t.sum, nil
}

// comparable returns the content as what states are compared with. The template must be in use.
func (t *sharedTemplate) comparable() (_ *delta.Base, err error) {
	t.comparing.Lock()
	defer t.comparing.Unlock()
	if t.compared == nil {
		t.compared, err = delta.NewBase(t.Template.State(), t.Template.Size())
	}
	return t.compared, err
}

// done ends one use.
func (t *sharedTemplate) done() error { return t.step(func() { t.users-- }) }

// retire ends the template's life: no start may use it any more.
func (t *sharedTemplate) retire() error { return t.step(func() { t.retired = true }) }

func (t *sharedTemplate) step(change func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	if t.retired && t.users == 0 && t.Template != nil {
		template := t.Template
		t.Template = nil
		return template.Close()
	}
	return nil
}

// template returns the template itself; nil if t is nil.
func (t *sharedTemplate) template() Template {
	if t == nil {
		return nil
	}
	return t.Template
}
