// Package redact finds secrets and personal data in bytes that leave Airlock, and replaces them
// with markers that name their kind.
//
// It looks for two things: data in the known formats of credentials and personal data (rules), and
// the credentials that Airlock itself holds (canaries), also in the encodings that code commonly
// applies. It reports kinds and counts, never values.
package redact

import (
	"cmp"
	"maps"
	"slices"
)

// Finding is the number of values of one kind that were removed.
type Finding struct {
	Kind  string // such as "github-token" or "email"
	Count int
}

// Redactor removes secrets and personal data. It is safe for concurrent use.
type Redactor struct {
	held     *held
	places   *places   // nil: markers carry no number
	personal *personal // nil: all personal data is removed
}

// New returns a Redactor with all rules and no canaries.
func New() *Redactor { return &Redactor{held: &held{}} }

// Hold adds a credential that Airlock holds. From then on it is removed from every text, in all its
// encodings. Values shorter than MinHeld bytes are too common to search for: Hold ignores them and
// returns false.
func (r *Redactor) Hold(value string) bool { return r.held.add(value) }

// HeldCount returns the number of credentials added with Hold. It never decreases: a text that was
// cleaned is free of all held credentials as long as the number is the same.
func (r *Redactor) HeldCount() int { return r.held.count() }

// Prepare builds the rules, which takes some milliseconds, once for all Redactors of the process.
// Otherwise they are built when the first text is cleaned.
func (r *Redactor) Prepare() { r.find([]byte("0"), newWork(1)) }

// Bytes returns text with all findings of rules and canaries replaced. It does not change text
// itself, and returns it unchanged if nothing is found.
func (r *Redactor) Bytes(text []byte) ([]byte, []Finding) {
	w := newWork(len(text))
	spans := r.find(text, w)
	var again repeated
	again.learn(text, spans)
	return r.replace(text, append(spans, again.find(text, w)...))
}

// Held replaces only the credentials that were added with Hold. It is for bytes that code in a
// sandbox receives: that code may work with personal data, but must not see Airlock's credentials.
func (r *Redactor) Held(text []byte) ([]byte, []Finding) {
	return r.replace(text, r.held.find(text, newWork(len(text))))
}

// find searches a text and everything that is encoded in it.
func (r *Redactor) find(text []byte, w *work) []span {
	s := search{func(text []byte, w *work) []span {
		return append(r.choose(text, findPlain(text, w)), r.held.findPlain(text, w)...)
	}, w}
	return s.deep(text, fullDepth)
}

// span is a part of a text to be replaced.
type span struct {
	start, end int
	kind       string
	// rewrite returns the replacement, with the counts by kind. If it is nil, the replacement is a
	// marker of the kind.
	rewrite func(*Redactor) ([]byte, map[string]int)
	// joined reports that the span covers other spans or an encoded value. No part of it may be shown.
	joined bool
}

// replace replaces each span with a marker. Overlapping spans get one marker, with the kind of the
// widest.
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

// merged sorts spans and joins those that overlap. A joined span has the kind of the widest, and
// keeps its rewrite function only if the widest covers the others.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), plainLast(a, b),
			cmp.Compare(a.kind, b.kind))
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
		case s.rewrite == nil && s.kind != kindHeld: // s is the encoded text itself
			last.rewrite, last.joined = nil, true
		case s.kind != last.kind:
			last.joined = true
		}
	}
	return list
}

// plainLast orders spans with the same position: those with a rewrite function come first.
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

// Counts returns the sums of findings by kind, for audit records. It returns nil if there are no
// findings.
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
