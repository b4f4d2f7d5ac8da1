package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
)

// Choice is what becomes of personal data of one kind.
type Choice int

// The choices, the strictest first.
const (
	Placeholder Choice = iota // a marker with the kind in its place
	Mask                      // all but its last characters hidden
	Keep                      // as it is
)

// Choices are made by kind: email, phone, card, iban, us-ssn, ip-address. A kind
// without one has Placeholder.
type Choices map[string]Choice

// Personal are the choices for all data, and for what single servers answered.
type Personal struct {
	All     Choices
	Servers map[string]Choices // by server
}

// personalKinds are the kinds that are personal data, and no secrets.
var personalKinds = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// IsPersonal says whether a kind is personal data, and no secret.
func IsPersonal(kind string) bool { return slices.Contains(personalKinds, kind) }

// maxLearned is how many values of one run are remembered with the choice of the
// servers that returned them. Others have the choice for all data.
const maxLearned = 100_000

// personal applies the choices to what leaves one run.
type personal struct {
	choices Personal
	mu      sync.Mutex // guards learned
	learned map[[sha256.Size]byte]Choice
}

// With returns a Redactor with the same canaries that follows choices about
// personal data. It is for one run: what Learn tells it about the run's results
// stays with it.
func (r *Redactor) With(choices Personal) *Redactor {
	return &Redactor{held: r.held, places: r.places, personal: &personal{choices: choices, learned: map[[sha256.Size]byte]Choice{}}}
}

// Learn reads the personal data in a result of a server, so that its values
// follow the server's choices where they leave the run. A value that several
// servers returned follows the strictest.
func (r *Redactor) Learn(server string, result json.RawMessage) {
	if r.personal == nil || len(r.personal.choices.Servers) == 0 || !json.Valid(result) {
		return
	}
	for at := 0; at < len(result); {
		end := tokenEnd(result, at)
		if end == at {
			at++
			continue
		}
		if text, err := textOf(result[at:end]); err == nil {
			r.personal.learn(server, text)
		}
		at = end
	}
}

func (p *personal) learn(server string, text []byte) {
	for _, s := range append(findEmails(text), findNumbers(text)...) {
		choice := p.forServer(server, s.kind)
		key := digestOf(s.kind, text[s.start:s.end])
		p.mu.Lock()
		if before, ok := p.learned[key]; ok {
			p.learned[key] = min(before, choice)
		} else if len(p.learned) < maxLearned {
			p.learned[key] = choice
		}
		p.mu.Unlock()
	}
}

// forServer is the choice of a server, or that for all where it has none.
func (p *personal) forServer(server, kind string) Choice {
	if choice, ok := p.choices.Servers[server][kind]; ok {
		return choice
	}
	return p.choices.All[kind]
}

// of is the choice for one value.
func (p *personal) of(kind string, value []byte) Choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if choice, ok := p.learned[digestOf(kind, value)]; ok {
		return choice
	}
	return p.choices.All[kind]
}

// digestOf makes values equal that differ in their separators or their case.
func digestOf(kind string, value []byte) [sha256.Size]byte {
	key := []byte(kind + "\x00")
	for _, c := range bytes.ToLower(value) {
		if isAlnum(c) || c == '@' || c >= 0x80 {
			key = append(key, c)
		}
	}
	return sha256.Sum256(key)
}

// choose drops what is kept of the spans in a text, and hides part of what is masked.
func (r *Redactor) choose(text []byte, spans []span) []span {
	if r.personal == nil {
		return spans
	}
	return slices.DeleteFunc(spans, func(s span) bool {
		return IsPersonal(s.kind) && r.personal.of(s.kind, text[s.start:s.end]) == Keep
	})
}

// masked is what stands in the place of a value where its kind is masked.
func (r *Redactor) masked(kind string, value []byte) ([]byte, bool) {
	if r.personal == nil || !IsPersonal(kind) || r.personal.of(kind, value) != Mask {
		return nil, false
	}
	return mask(value), true
}

// shown is how many characters of a masked value are left.
const shown = 4

// mask hides letters and digits but the last four, or, in an address, the first
// of the mailbox and the last part of the domain. Separators and length stay.
func mask(value []byte) []byte {
	out := slices.Clone(value)
	left, right := 0, len(out)
	if at := bytes.IndexByte(out, '@'); at > 0 {
		left, right = 1, bytes.LastIndexByte(out, '.')
	} else {
		for n := 0; right > 0 && n < shown; right-- {
			if isAlnum(out[right-1]) {
				n++
			}
		}
	}
	for i := left; i < right; i++ {
		if isAlnum(out[i]) {
			out[i] = '*'
		}
	}
	return out
}
