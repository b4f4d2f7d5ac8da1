package catalog

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// Detail selects how much of each tool a search returns.
type Detail string

// The details a search can ask for. The empty one means DetailDescription.
const (
	DetailName        Detail = "name"
	DetailDescription Detail = "name+description"
)

// Limits of one search.
const (
	DefaultLimit = 8
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
	Offset   int // how many of the best are passed over
	// Language adds to each tool how code in that language calls it. It has no
	// effect unless it was passed to Prepare.
	Language string
	// Similar are tools that are near to Text in meaning, nearest first: they are
	// fused with those that its words find.
	Similar []Similar
}

// Similar is a tool that is near to a question in meaning.
type Similar struct {
	ToolRef
	Alone bool // so near that it fits even if no word of the question matches
}

// Answer is what a search found, in the form that code and models get it.
type Answer struct {
	Tools  []Entry `json:"tools"`            // best first; never nil
	Total  int     `json:"total"`            // how many fit, those that are not in Tools included
	Offset int     `json:"offset,omitempty"` // how many of them come before Tools
	// Missing are the servers that were searched but are not there.
	Missing []MissingServer `json:"missingServers,omitempty"`
}

// Entry is one tool in the answer to a search: enough to choose it, no schema.
type Entry struct {
	ServerID    string `json:"serverId"`
	ToolName    string `json:"toolName"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Import      string `json:"import,omitempty"`
	Signature   string `json:"signature,omitempty"`
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

// Search returns the tools of the Answer of Find.
func (s *Snapshot) Search(q Query) []Entry { return s.Find(q).Tools }

// Find returns the tools that fit the query, best first. The texts have passed Clean. An
// unknown server has no tools: use Server first to report it.
func (s *Snapshot) Find(q Query) Answer {
	s.searchOnce.Do(func() { s.prepareSearch(earlier{}) })
	found := s.matching(q)
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	from := min(max(0, q.Offset), len(found))
	to := min(from+min(limit, MaxLimit), len(found))
	answer := Answer{Tools: make([]Entry, 0, to-from), Total: len(found), Offset: from, Missing: s.Missing(q.ServerID)}
	for _, doc := range found[from:to] {
		entry := s.entries[doc]
		if q.Detail == DetailName {
			entry.Title, entry.Description = "", ""
		}
		usage := s.usages[q.Language][ToolRef{entry.ServerID, entry.ToolName}]
		entry.Import, entry.Signature = usage.Import, usage.Signature
		answer.Tools = append(answer.Tools, entry)
	}
	return answer
}

// Usage returns how code in a language calls a tool, or the zero value if that is unknown.
func (s *Snapshot) Usage(tool ToolRef, language string) Usage {
	s.searchOnce.Do(func() { s.prepareSearch(earlier{}) })
	return s.usages[language][tool]
}

// matching returns the positions of all tools that fit, best first; without a
// text in order of server and name.
func (s *Snapshot) matching(q Query) []int {
	wanted := func(doc int) bool { return q.ServerID == "" || s.tools[doc].ServerID == q.ServerID }
	var found []int
	if strings.TrimSpace(q.Text) == "" {
		for doc := range s.tools {
			if wanted(doc) {
				found = append(found, doc)
			}
		}
		return found
	}
	for _, hit := range s.index.search(q.Text, wanted) {
		found = append(found, hit.doc)
	}
	if len(q.Similar) == 0 {
		return found
	}
	return fuse(found, s.places(q.Similar, wanted))
}

// Prepare builds what searches need: the index, and how code in the given languages calls
// each tool. usages may be nil; otherwise it is called concurrently for all languages.
// Results for unchanged tools are copied from before, the previous snapshot, which may be
// nil. Prepare must be called before the snapshot is shared.
func (s *Snapshot) Prepare(before *Snapshot, usages Usages, languages ...string) {
	s.prepare = func(view *Snapshot) { view.Prepare(nil, usages, languages...) }
	if before != nil && before.digest == s.digest {
		s.searchOnce.Do(func() {
			before.searchOnce.Do(func() { before.prepareSearch(earlier{}) })
			s.index, s.entries, s.docs = before.index, before.entries, before.docs
		})
		s.usages = before.usages
		return
	}
	known := s.unchanged(before)
	s.searchOnce.Do(func() { s.prepareSearch(known) })
	if usages == nil {
		return
	}
	s.shownOnce.Do(func() { s.show(known) })
	found := make([]map[ToolRef]Usage, len(languages))
	var working sync.WaitGroup
	for i, language := range languages {
		working.Go(func() { found[i] = usages(s.Shown(), language) })
	}
	working.Wait()
	s.usages = map[string]map[ToolRef]Usage{}
	for i, language := range languages {
		s.usages[language] = found[i]
	}
}

// prepareSearch builds what every search needs, once for a snapshot. What is
// known of unchanged tools is taken over.
func (s *Snapshot) prepareSearch(known earlier) {
	docs := make([]document, len(s.tools))
	s.entries = make([]Entry, len(s.tools))
	workers := runtime.GOMAXPROCS(0)
	var working sync.WaitGroup
	for first := range workers {
		working.Go(func() {
			for i := first; i < len(s.tools); i += workers {
				if was, same := known.position(i); same {
					docs[i], s.entries[i] = known.docs[was], known.entries[was]
				} else {
					docs[i], s.entries[i] = s.describe(s.tools[i])
				}
			}
		})
	}
	working.Wait()
	s.docs, s.index = docs, newIndex(docs)
}

// describe returns a tool as it is searched, and as it is shown.
func (s *Snapshot) describe(tool *Tool) (document, Entry) {
	shown := shownText{title: Clean(tool.displayTitle()), description: s.cleanDescription(tool, tool.Description)}
	return searched(tool, shown), Entry{
		ServerID:    tool.ServerID,
		ToolName:    tool.Name,
		Title:       shown.title,
		Description: shorten(shown.description, maxShownDescription),
	}
}

// shorten cuts text to at most limit characters, at a nearby space if possible, and marks
// the cut.
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
