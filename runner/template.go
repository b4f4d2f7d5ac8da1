package runner

import "sync"

// sharedTemplate is a template with its users: it is closed when it has been
// retired and the last start from it is over.
type sharedTemplate struct {
	Template

	mu      sync.Mutex
	users   int
	retired bool
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
