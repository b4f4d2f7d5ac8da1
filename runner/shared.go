package runner

import "sync"

// sharedTemplate is a template with its users: it is closed when it has been
// given up and the last start from it is over.
type sharedTemplate struct {
	Template

	mu      sync.Mutex
	users   int
	givenUp bool
}

// use reports whether the template may be used; then done must follow.
func (t *sharedTemplate) use() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.givenUp {
		return false
	}
	t.users++
	return true
}

// done ends one use.
func (t *sharedTemplate) done() error { return t.leave(func() { t.users-- }) }

// giveUp ends the template's life: nobody starts to use it any more.
func (t *sharedTemplate) giveUp() error { return t.leave(func() { t.givenUp = true }) }

func (t *sharedTemplate) leave(step func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	step()
	if t.givenUp && t.users == 0 && t.Template != nil {
		template := t.Template
		t.Template = nil
		return template.Close()
	}
	return nil
}
