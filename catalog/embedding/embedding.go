// Package embedding finds tools by meaning: it turns the texts of tools and
// questions into vectors, by a table of words in a file or by an endpoint that speaks
// OpenAI's API, and compares them. Searches fuse what it finds with what words
// find; without it they lack nothing else.
package embedding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Source turns texts into vectors.
type Source interface {
	// Vectors returns a vector for each text, in their order and all of one length.
	// The vector is nil for a text in which the source knows no word. Vectors is
	// safe for concurrent use.
	Vectors(ctx context.Context, texts []string) ([][]float32, error)
	// Remote reports whether texts leave this process, so that every call takes time.
	Remote() bool
}

// Limits of a search by meaning.
const (
	maxText    = 600 // bytes of a tool's text
	maxSimilar = 30  // tools
	// A tool is near to a question when it is by so many standard deviations nearer
	// than the tools are on average; one that is to be found by meaning alone must be
	// nearer.
	nearEnough  = 1.5
	nearAlone   = 3
	restAfter   = 30 * time.Second // after a failure, in which a remote source is not asked
	maxQuestion = 2000             // bytes
	maxKept     = 200              // questions whose vectors are kept
	maxViews    = 8                // snapshots whose places are kept
)

// Searcher compares questions with tools. Its methods may be called concurrently.
type Searcher struct {
	source Source
	cache  *cache // nil keeps vectors in memory only
	now    func() time.Time

	learning sync.Mutex // one Learn at a time

	mu      sync.Mutex
	vectors map[string][]float32 // unit vectors of tools' texts by digest; nil if the source has none
	asked   map[string][]float32 // of questions
	views   map[string][]place   // of snapshots, by digest; cleared when vectors change
	restTil time.Time
}

// New returns a searcher. directory caches the vectors of a remote source for the next
// start, in one file per name; if it is empty, nothing is cached. The name identifies the
// source of the vectors: the endpoint, the model and the dimensions.
func New(source Source, directory, name string) *Searcher {
	s := &Searcher{source: source, now: time.Now, vectors: map[string][]float32{}, asked: map[string][]float32{},
		views: map[string][]place{}}
	if directory != "" && source.Remote() {
		s.cache = openCache(directory, name)
		s.vectors = s.cache.load()
	}
	return s
}

// item is a text with what it is about.
type item struct {
	catalog.ToolRef
	text, digest string
}

// itemsOf returns the texts of a snapshot's tools.
func itemsOf(snapshot *catalog.Snapshot) []item {
	var items []item
	for _, server := range snapshot.Shown() {
		for i := range server.Tools {
			if tool := &server.Tools[i]; !tool.Withheld {
				text := Text(tool.Name, tool.Description)
				items = append(items, item{catalog.ToolRef{ServerID: server.ID, ToolName: tool.Name}, text,
					digestOf(text)})
			}
		}
	}
	return items
}

// Learn requests the vectors of the snapshot's tools that have none yet. Failed requests
// are repeated at the next call.
func (s *Searcher) Learn(ctx context.Context, snapshot *catalog.Snapshot) error {
	items := itemsOf(snapshot)
	s.learning.Lock()
	defer s.learning.Unlock()
	texts := map[string]string{}
	s.mu.Lock()
	for _, one := range items {
		if _, known := s.vectors[one.digest]; !known {
			texts[one.digest] = one.text
		}
	}
	s.mu.Unlock()
	if len(texts) == 0 {
		return nil
	}
	digests := slices.Sorted(maps.Keys(texts))
	wanted := make([]string, len(digests))
	for i, digest := range digests {
		wanted[i] = texts[digest]
	}
	// A source hands over what it has when it fails half-way.
	made, err := s.source.Vectors(ctx, wanted)
	s.mu.Lock()
	for i, vector := range made {
		s.vectors[digests[i]] = unit(vector)
	}
	s.keepLocked(items)
	clear(s.views)
	kept := maps.Clone(s.vectors)
	s.mu.Unlock()
	return errors.Join(err, s.cache.save(kept))
}

// keepLocked forgets the vectors of all other texts.
func (s *Searcher) keepLocked(items []item) {
	needed := map[string][]float32{}
	for _, one := range items {
		if vector, ok := s.vectors[one.digest]; ok {
			needed[one.digest] = vector
		}
	}
	s.vectors = needed
}

// Text returns the text that represents a tool to a source: the words of its name and the
// beginning of its cleaned description.
func Text(name, description string) string {
	text := strings.Join(catalog.Words(name), " ") + ". " + catalog.Clean(description)
	return truncate.Head(text, maxText)
}

func digestOf(text string) string { return canon.Digest([]byte(text)) }

// Similar returns the tools whose meaning is near to the question, nearest first. If it
// returns an error, the search continues by words only. It takes as long as the source
// needs for one text; after a failure it returns an error at once for a while.
func (s *Searcher) Similar(ctx context.Context, snapshot *catalog.Snapshot, question string) ([]catalog.Similar,
	error) {
	asked, err := s.vectorOf(ctx, truncate.Head(question, maxQuestion))
	if err != nil || asked == nil {
		return nil, err
	}
	return nearest(asked, s.view(snapshot))
}

// nearest returns the places that are near to a vector.
func nearest(asked []float32, places []place) ([]catalog.Similar, error) {
	type near struct {
		catalog.ToolRef
		cosine float64
	}
	var all []near
	for _, tool := range places {
		if len(tool.vector) == len(asked) {
			all = append(all, near{tool.ToolRef, dot(asked, tool.vector)})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no tool has a vector yet")
	}
	var mean, square float64
	for _, n := range all {
		mean += n.cosine / float64(len(all))
		square += n.cosine * n.cosine / float64(len(all))
	}
	deviation := math.Sqrt(max(square-mean*mean, 1e-9))
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
	var similar []catalog.Similar
	for _, n := range all[:min(maxSimilar, len(all))] {
		if far := (n.cosine - mean) / deviation; far >= nearEnough {
			similar = append(similar, catalog.Similar{ToolRef: n.ToolRef, Alone: far >= nearAlone})
		}
	}
	return similar, nil
}

// place is a tool with its vector.
type place struct {
	catalog.ToolRef
	vector []float32
}

// view returns the tools of a snapshot that have a vector.
func (s *Searcher) view(snapshot *catalog.Snapshot) []place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.views[snapshot.Digest()]; ok {
		return known
	}
	places := s.placesLocked(itemsOf(snapshot))
	if len(s.views) >= maxViews {
		clear(s.views)
	}
	s.views[snapshot.Digest()] = places
	return places
}

func (s *Searcher) placesLocked(items []item) []place {
	var places []place
	for _, one := range items {
		if vector := s.vectors[one.digest]; vector != nil {
			places = append(places, place{one.ToolRef, vector})
		}
	}
	return places
}

// vectorOf returns the vector of a question, or nil if the source knows none of its words.
func (s *Searcher) vectorOf(ctx context.Context, question string) ([]float32, error) {
	s.mu.Lock()
	vector, known := s.asked[question]
	rests := s.source.Remote() && s.now().Before(s.restTil)
	s.mu.Unlock()
	switch {
	case known:
		return vector, nil
	case rests:
		return nil, errors.New("the last attempt has just failed")
	}
	made, err := s.source.Vectors(ctx, []string{question})
	if err == nil && len(made) != 1 {
		err = fmt.Errorf("got %d vectors for one text", len(made))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.restTil = s.now().Add(restAfter)
		return nil, err
	}
	if len(s.asked) >= maxKept {
		clear(s.asked)
	}
	s.asked[question] = unit(made[0])
	return s.asked[question], nil
}

// unit returns the vector of length one in the same direction; nil for none.
func unit(v []float32) []float32 {
	length := math.Sqrt(dot(v, v))
	if length == 0 {
		return nil
	}
	scaled := make([]float32, len(v))
	for i := range v {
		scaled[i] = float32(float64(v[i]) / length)
	}
	return scaled
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
