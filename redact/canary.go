package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// MinHeld is the length of the shortest credential that is searched for, in bytes.
const MinHeld = 6

// kindHeld is the kind of a credential that Airlock itself holds.
const kindHeld = "held-credential"

// canary is one credential in every form that is searched for.
type canary struct{ forms [][]byte }

func newCanary(value string) (canary, bool) {
	if len(value) < MinHeld {
		return canary{}, false
	}
	forms := []string{
		value,
		hex.EncodeToString([]byte(value)),
		strings.ToUpper(hex.EncodeToString([]byte(value))),
		reverse(value),
	}
	forms = append(forms, escapedForms(value)...)
	forms = append(forms, base64Forms(value)...)
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var c canary
	for _, form := range slices.Compact(forms) {
		c.forms = append(c.forms, []byte(form))
	}
	return c, true
}

// escapedForms returns the forms of a value in URLs and in JSON.
func escapedForms(value string) []string {
	query := url.QueryEscape(value)
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(
		query) // as JavaScript writes it
	forms := []string{query, component, strings.ReplaceAll(component, "%2F", "/"), url.PathEscape(value)}
	for _, form := range forms {
		forms = append(forms, lowerEscapes(form))
	}
	if quoted, err := json.Marshal(value); err == nil {
		text := string(quoted[1 : len(quoted)-1])
		forms = append(forms, text, strings.ReplaceAll(text, "/", `\/`))
	}
	ascii := strconv.QuoteToASCII(value)
	return append(forms, ascii[1:len(ascii)-1])
}

// lowerEscapes returns s with percent escapes in lower case: %2f for %2F.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// base64Forms returns the forms that a value has within the base64 of a longer text: one for each
// of the three alignments at which the value can begin, in both alphabets. Characters that depend
// on neighbouring bytes are left out.
func base64Forms(value string) []string {
	var forms []string
	for shift := range 3 {
		padded := strings.Repeat("\x00", shift) + value
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(padded))
			from := []int{0, 2, 3}[shift]
			to := len(text)
			if len(padded)%3 != 0 {
				to--
			}
			if form := text[from:to]; len(form) >= MinHeld {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Secret is a secret found by a rule.
type Secret struct {
	Kind  string
	Value secret.Value
}

// Secrets returns the secrets that rules find in a text, without decoding it. Personal data are not
// included.
func (r *Redactor) Secrets(text []byte) []Secret {
	var list []Secret
	for _, s := range merged(standard().find(text, newWork(len(text)))) {
		list = append(list, Secret{s.kind, secret.New(string(text[s.start:s.end]))})
	}
	return list
}

// held is the set of canaries. Redactors that were derived from each other share it.
type held struct {
	mu       sync.RWMutex // guards both
	canaries []canary
	known    map[string]bool // the values of canaries
}

func (h *held) add(value string) bool {
	c, ok := newCanary(value)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known[value] {
		return true
	}
	if h.known == nil {
		h.known = map[string]bool{}
	}
	h.known[value] = true
	h.canaries = append(h.canaries, c)
	return true
}

// count returns the number of canaries. It never decreases.
func (h *held) count() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.canaries)
}

// find returns the spans of every form of every canary, and of encoded text that contains one.
func (h *held) find(text []byte, w *work) []span {
	if h.count() == 0 { // nothing to search for
		return nil
	}
	s := search{h.findPlain, w}
	return s.deep(text, fullDepth)
}

func (h *held) findPlain(text []byte, _ *work) []span {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var spans []span
	for _, c := range h.canaries {
		for _, form := range c.forms {
			for at := 0; ; {
				i := bytes.Index(text[at:], form)
				if i < 0 {
					break
				}
				spans = append(spans, span{start: at + i, end: at + i + len(form), kind: kindHeld})
				at += i + len(form)
			}
		}
	}
	return spans
}
