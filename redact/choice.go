package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
)

// Choice is the treatment of personal data of one kind.
type Choice int

// The choices, the strictest first.
const (
	Placeholder Choice = iota // replaced with a marker of the kind
	Mask                      // all but its last characters hidden
	Keep                      // left unchanged
)

// Choices maps kinds to choices: email, phone, card, iban, us-ssn, ip-address. The default is
// Placeholder.
type Choices map[string]Choice

// Personal has the choices for all data and those for data returned by single servers.
type Personal struct {
	All     Choices
	Servers map[string]Choices // by server
}

// personalKinds are the kinds that are personal data and not secrets.
var personalKinds = []string{"email", "phone", "card", "iban", "us-ssn", "ip-address"}

// IsPersonal reports whether a kind is personal data and not a secret.
func IsPersonal(kind string) bool { return slices.Contains(personalKinds, kind) }

// maxLearned is the maximum number of values of one run that are remembered with the choice of the
// servers that returned them. The choice for all data applies to further values.
const maxLearned = 100_000

// personal applies the choices to what leaves one run.
type personal struct {
	choices Personal
	mu      sync.Mutex // guards learned
	learned map[[sha256.Size]byte]Choice
}

// With returns a Redactor with the same canaries that applies choices to personal data. It must be
// used for one run only, because Learn stores values of the run's results in it.
func (r *Redactor) With(choices Personal) *Redactor {
	return &Redactor{held: r.held, places: r.places,
		personal: &personal{choices: choices, learned: map[[sha256.Size]byte]Choice{}}}
}

// Learn reads the personal data in a result of a server. If these values leave the run, the choices
// of the server apply to them. If several servers return a value, the strictest choice applies.
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

// forServer returns the choice of a server, or the choice for all data if the server has none.
func (p *personal) forServer(server, kind string) Choice {
	if choice, ok := p.choices.Servers[server][kind]; ok {
		return choice
	}
	return p.choices.All[kind]
}

// of returns the choice for one value.
func (p *personal) of(kind string, value []byte) Choice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if choice, ok := p.learned[digestOf(kind, value)]; ok {
		return choice
	}
	return p.choices.All[kind]
}

// digestOf returns a digest that is equal for values that differ only in separators or case.
func digestOf(kind string, value []byte) [sha256.Size]byte {
	key := []byte(kind + "\x00")
	for _, c := range bytes.ToLower(value) {
		if isAlnum(c) || c == '@' || c >= 0x80 {
			key = append(key, c)
		}
	}
	return sha256.Sum256(key)
}

// choose removes the spans of personal data whose choice is Keep.
func (r *Redactor) choose(text []byte, spans []span) []span {
	if r.personal == nil {
		return spans
	}
	return slices.DeleteFunc(spans, func(s span) bool {
		return IsPersonal(s.kind) && r.personal.of(s.kind, text[s.start:s.end]) == Keep
	})
}

// masked returns the replacement of a value whose choice is Mask, and reports whether it is.
func (r *Redactor) masked(kind string, value []byte) ([]byte, bool) {
	if r.personal == nil || !IsPersonal(kind) || r.personal.of(kind, value) != Mask {
		return nil, false
	}
	return mask(value), true
}

// shown is the number of characters of a masked value that stay visible.
const shown = 4

// mask hides all letters and digits but the last four. In an e-mail address it shows the first
// character of the mailbox and the last part of the domain. Separators and length do not change.
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
