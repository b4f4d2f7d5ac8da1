// Package redact finds secrets and personal data in bytes that leave Airlock,
// and puts the name of what it found in their place.
//
// It knows two things: the formats of credentials and personal data (rules), and
// the very credentials that Airlock holds (canaries), in the encodings that
// code could put them into. It reports kinds and counts, never values.
package redact

import (
	"cmp"
	"maps"
	"slices"
)

// Finding counts what was removed of one kind.
type Finding struct {
	Kind  string // such as "github-token" or "email"
	Count int
}

// Redactor removes what must not leave. All methods may be called concurrently.
type Redactor struct {
	held     *held
	places   *places   // nil: markers carry no number
	personal *personal // nil: all personal data is removed
}

// New returns a Redactor that knows all rules and no canary.
func New() *Redactor { return &Redactor{held: &held{}} }

// Hold adds a credential that Airlock holds: it is removed everywhere from now
// on, in all its encodings. Values under MinHeld bytes are too common to be
// looked for, and false is returned for them.
func (r *Redactor) Hold(value string) bool { return r.held.add(value) }

// HeldCount is the number of credentials that are removed everywhere. It only grows: text that was cleaned of
// them has none as long as the number is the same.
func (r *Redactor) HeldCount() int { return r.held.count() }

// Prepare makes what the first text that is cleaned would else wait for, some
// milliseconds of work, once for all Redactors of the process.
func (r *Redactor) Prepare() { r.find([]byte("0"), newWork(1)) }

// Bytes returns text with everything removed that rules or canaries find. The
// text itself is not changed, and returned as it is when nothing was found.
func (r *Redactor) Bytes(text []byte) ([]byte, []Finding) {
	return r.replace(text, r.find(text, newWork(len(text))))
}

// Held is Bytes for canaries alone: what even the code in the sandbox must not
// see, while other people's data it may work with.
func (r *Redactor) Held(text []byte) ([]byte, []Finding) {
	return r.replace(text, r.held.find(text, newWork(len(text))))
}

// find searches a text and what is encoded in it.
func (r *Redactor) find(text []byte, w *work) []span {
	s := search{func(text []byte, w *work) []span {
		return append(r.choose(text, findPlain(text, w)), r.held.findPlain(text, w)...)
	}, w}
	return s.deep(text, fullDepth)
}

// span is one place to be replaced.
type span struct {
	start, end int
	kind       string
	// rewrite gives what stands in its place, with the counts by kind; nil means a
	// marker of its kind.
	rewrite func(*Redactor) ([]byte, map[string]int)
	// joined says that the place covers others, or stands for something encoded:
	// nothing of it may be shown.
	joined bool
}

// replace puts a marker in the place of each span. Where spans overlap, one
// marker covers them all and bears the kind of the widest.
func (r *Redactor) replace(text []byte, spans []span) ([]byte, []Finding) {
	out, counts := r.replaceAll(text, spans)
	if len(counts) == 0 {
		return text, nil
	}
	return out, findings(counts)
}

func (r *Redactor) replaceAll(text []byte, spans []span) ([]byte, map[string]int) {
	if len(spans) == 0 {
		return text, nil
	}
	out, at, counts := make([]byte, 0, len(text)), 0, map[string]int{}
	for _, s := range merged(spans) {
		out = append(out, text[at:s.start]...)
		at = s.end
		if s.rewrite == nil {
			if shown, ok := r.masked(s.kind, text[s.start:s.end]); ok && !s.joined {
				out = append(out, shown...)
				counts[s.kind]++
				continue
			}
			out = append(out, r.places.marker(s.kind, text[s.start:s.end])...)
			counts[s.kind]++
			continue
		}
		rewritten, inside := s.rewrite(r)
		out = append(out, rewritten...)
		for kind, n := range inside {
			counts[kind] += n
		}
	}
	return append(out, text[at:]...), counts
}

// merged orders spans and joins those that overlap. A joined one keeps the kind
// of the widest, and its rewriting only where that one covers all.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), plainLast(a, b), cmp.Compare(a.kind, b.kind))
	})
	if len(spans) == 0 {
		return nil
	}
	list := spans[:1]
	for _, s := range spans[1:] {
		last := &list[len(list)-1]
		switch {
		case s.start >= last.end:
			list = append(list, s)
		case s.end > last.end:
			last.joined = true
			if s.end-s.start > last.end-last.start {
				last.kind = s.kind
			}
			last.end, last.rewrite = s.end, nil
		case s.rewrite == nil && s.kind != kindHeld: // the encoded text itself is what was looked for
			last.rewrite, last.joined = nil, true
		case s.kind != last.kind:
			last.joined = true
		}
	}
	return list
}

// plainLast orders spans of one place: those that are rewritten come first.
func plainLast(a, b span) int {
	switch {
	case a.rewrite != nil && b.rewrite == nil:
		return -1
	case a.rewrite == nil && b.rewrite != nil:
		return 1
	}
	return 0
}

func findings(counts map[string]int) []Finding {
	list := make([]Finding, 0, len(counts))
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, Finding{kind, counts[kind]})
	}
	return list
}

// Counts sums findings by kind, as an audit record wants them; nil for none.
func Counts(lists ...[]Finding) map[string]int {
	var counts map[string]int
	for _, list := range lists {
		for _, f := range list {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[f.Kind] += f.Count
		}
	}
	return counts
}
