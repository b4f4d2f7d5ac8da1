package console

import (
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// titles finds a title for each run in its recording: the first comment of the code, or the first
// call. It is safe for concurrent use.
type titles struct {
	load  func(run string) (*replay.Recording, error)
	clean func(text string) string // removes secrets

	mu    sync.Mutex // guards known
	known map[string]string
}

const (
	maxTitles   = 5000
	titleLength = 100 // characters
)

func newTitles(load func(run string) (*replay.Recording, error), clean func(text string) string) *titles {
	return &titles{load: load, clean: clean, known: map[string]string{}}
}

// of returns the title of a run that is over, or "" if it has none.
func (t *titles) of(run string) string {
	t.mu.Lock()
	title, ok := t.known[run]
	t.mu.Unlock()
	if ok {
		return title
	}
	if recording, err := t.load(run); err == nil { // otherwise it is not kept
		title = t.clean(titleOf(recording))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTitles {
		clear(t.known)
	}
	t.known[run] = title
	return title
}

func titleOf(r *replay.Recording) string {
	title := firstComment(r.Code)
	if title == "" && len(r.Exchanges) > 0 {
		title = r.Exchanges[0].ServerID + "/" + r.Exchanges[0].Name
	}
	return truncate.Characters(visible.Line(title), titleLength)
}

// firstComment returns the comment or the docstring that code begins with.
func firstComment(code string) string {
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"#", "//", "/*", `"""`, "'''"} {
			text, ok := strings.CutPrefix(line, mark)
			if !ok {
				continue
			}
			text = strings.Trim(text, "#/*\"' \t!")
			if text != "" {
				return text
			}
		}
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "/") &&
			!strings.HasPrefix(line, `"""`) && !strings.HasPrefix(line, "'''") {
			return ""
		}
	}
	return ""
}
