package catalog

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Detail says how much a search tells about each tool it finds.
type Detail string

// The details a search can ask for. The empty one means DetailDescription.
const (
	DetailName        Detail = "name"
	DetailDescription Detail = "name+description"
)

// Limits of one search.
const (
	DefaultLimit = 20
	MaxLimit     = 200
	// maxShownDescription is how many characters of a description a search
	// shows; the whole text belongs to the definition.
	maxShownDescription = 1000
)

// Query is what to search for.
type Query struct {
	Text     string // empty finds every tool, in order of server and name
	ServerID string // only this server's tools; empty means all servers
	Detail   Detail
	Limit    int // 0 means DefaultLimit; more than MaxLimit means MaxLimit
}

// Entry is one tool in the answer to a search: enough to choose it, no schema.
type Entry struct {
	ServerID    string `json:"serverId"`
	ToolName    string `json:"toolName"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// ParseDetail reads a detail as callers write it; the empty text is
// DetailDescription, and anything unknown is an error that names both.
func ParseDetail(text string) (Detail, error) {
	switch d := Detail(text); d {
	case "":
		return DetailDescription, nil
	case DetailName, DetailDescription:
		return d, nil
	default:
		return "", fmt.Errorf("unknown detail %s: use %q or %q", Quote(text), DetailName, DetailDescription)
	}
}

// Search returns the tools that fit the query, best first. Its texts have
// passed Clean and may be shown to a model. An unknown server has no tools: ask
// Server first to tell the caller so.
func (s *Snapshot) Search(q Query) []Entry {
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	wanted := func(doc int) bool { return q.ServerID == "" || s.tools[doc].ServerID == q.ServerID }
	s.searchOnce.Do(s.prepareSearch)
	entries := []Entry{}
	take := func(doc int) {
		entry := s.entries[doc]
		if q.Detail == DetailName {
			entry.Title, entry.Description = "", ""
		}
		entries = append(entries, entry)
	}
	if strings.TrimSpace(q.Text) == "" {
		for doc := range s.tools {
			if len(entries) < limit && wanted(doc) {
				take(doc)
			}
		}
		return entries
	}
	hits := s.index.search(q.Text, wanted)
	for _, hit := range hits[:min(limit, len(hits))] {
		take(hit.doc)
	}
	return entries
}

// Prepare builds what searches need, so that none of them waits for it. What
// before, the snapshot that this one follows, already knows is taken over; nil
// when there is none.
func (s *Snapshot) Prepare(before *Snapshot) {
	s.searchOnce.Do(func() {
		if before != nil && before.digest == s.digest {
			before.Prepare(nil)
			s.index, s.entries = before.index, before.entries
			return
		}
		s.prepareSearch()
	})
}

// prepareSearch builds what every search needs, once for a snapshot.
func (s *Snapshot) prepareSearch() {
	docs := make([]document, len(s.tools))
	s.entries = make([]Entry, len(s.tools))
	for i, tool := range s.tools {
		shown := shownText{title: Clean(tool.displayTitle()), description: s.cleanDescription(tool, tool.Description)}
		docs[i] = searched(tool, shown)
		s.entries[i] = Entry{
			ServerID:    tool.ServerID,
			ToolName:    tool.Name,
			Title:       shown.title,
			Description: shorten(shown.description, maxShownDescription),
		}
	}
	s.index = newIndex(docs)
}

// shorten cuts text to at most limit characters, at a space where there is one
// near, and marks the cut.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	cut := 0
	for i := range text {
		if limit == 0 {
			cut = i
			break
		}
		limit--
	}
	if space := strings.LastIndexAny(text[:cut], " \n\t"); space > cut*3/4 {
		cut = space
	}
	return strings.TrimRight(text[:cut], " \n\t") + " …"
}
