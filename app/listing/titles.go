package listing

import (
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// titles finds a title for each run in its code or its recording: the first comment, or the first
// call. It is safe for concurrent use.
type titles struct {
	clean func(text string) string // removes secrets

	mu    sync.Mutex // guards known
	known map[string]string
}

const (
	maxTitles   = 5000
	titleLength = 100 // characters
)

func newTitles(clean func(text string) string) *titles {
	return &titles{clean: clean, known: map[string]string{}}
}

// of returns the title of a run that is over, or "" if it has none. load reads its recording.
func (t *titles) of(run string, load func(run string) (*replay.Recording, error)) string {
	t.mu.Lock()
	title, ok := t.known[run]
	t.mu.Unlock()
	if ok {
		return title
	}
	recording, err := load(run)
	if err != nil { // it is not kept, or not written yet
		return ""
	}
	title = t.shown(titleOf(recording))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTitles {
		clear(t.known)
	}
	t.known[run] = title
	return title
}

// ofCode returns the title of a run in progress, or "" if its code has none.
func (t *titles) ofCode(code string) string { return t.shown(firstComment(code)) }

// shown returns the beginning of a title. Secrets are removed before it is cut, because half a secret is not
// recognized.
func (t *titles) shown(title string) string {
	return truncate.Characters(visible.Line(t.clean(title)), titleLength)
}

func titleOf(r *replay.Recording) string {
	title := firstComment(r.Code)
	if title == "" && len(r.Exchanges) > 0 {
		title = r.Exchanges[0].ServerID + "/" + r.Exchanges[0].Name
	}
	return title
}

// firstComment returns the first line of the comment or the docstring that code begins with.
func firstComment(code string) string {
	isOpen := false // a comment or docstring of several lines
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		text := strings.Trim(line, "#/*\"' \t")
		if strings.HasPrefix(line, "#!") || strings.Contains(text, "-*-") { // for the system and for editors
			continue
		}
		switch {
		case strings.HasPrefix(line, "/*"), strings.HasPrefix(line, `"""`), strings.HasPrefix(line, "'''"):
			isOpen = true
		case !isOpen && line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//"):
			return ""
		}
		if text != "" {
			return text
		}
	}
	return ""
}
