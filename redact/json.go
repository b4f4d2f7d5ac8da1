package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// JSON is Bytes for one JSON value. Strings and member names are decoded and cleaned one by one,
// and everything else is copied unchanged, so the result is always JSON of the same shape. A number
// that is found is replaced with a string.
//
// A string is also removed if its surroundings identify it as a secret: the name of its member, a
// name beside it, or the header of its column.
func (r *Redactor) JSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return r.cleanJSON(raw, r.find, true)
}

// HeldJSON replaces the credentials that Airlock holds in one JSON value, like Held.
func (r *Redactor) HeldJSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return r.cleanJSON(raw, r.held.find, false)
}

// JSONTexts is JSON for a definition. Its members describe values and do not contain them, so each
// string is examined without its surroundings.
func (r *Redactor) JSONTexts(raw json.RawMessage) (json.RawMessage, error) {
	cleaned, _, err := r.cleanJSON(raw, r.find, false)
	return cleaned, err
}

var errNotJSON = errors.New("redacting: it is not JSON")

func (r *Redactor) cleanJSON(raw json.RawMessage, find finder, around bool) (json.RawMessage, []Finding, error) {
	if canon.IsDeep(raw) {
		return nil, nil, fmt.Errorf("redacting: %w", canon.ErrDeep)
	}
	if !json.Valid(raw) {
		return nil, nil, errNotJSON
	}
	var marked map[int]span
	if around && secretHint.Match(raw) {
		marked = markSecrets(raw)
	}
	w := newWork(len(raw))
	spans := map[int][]span{} // by the position of the token
	var again repeated
	if err := eachToken(raw, func(at int, text []byte) {
		list := find(text, w)
		if s, ok := marked[at]; ok {
			list = append(list, s)
		}
		if len(list) > 0 {
			again.learn(text, list)
			spans[at] = list
		}
	}); err != nil {
		return nil, nil, err
	}
	if len(spans) == 0 {
		return raw, nil, nil
	}
	var out bytes.Buffer
	var found [][]Finding
	copied := 0 // raw[:copied] is in out
	if err := eachToken(raw, func(at int, text []byte) {
		cleaned, findings := r.replace(text, append(spans[at], again.find(text, w)...))
		if len(findings) == 0 {
			return
		}
		quoted, _ := json.Marshal(string(cleaned)) // a string is always valid
		out.Write(raw[copied:at])
		out.Write(quoted)
		copied = tokenEnd(raw, at)
		found = append(found, findings)
	}); err != nil {
		return nil, nil, err
	}
	if copied == 0 {
		return raw, nil, nil
	}
	out.Write(raw[copied:])
	return out.Bytes(), findings(Counts(found...)), nil
}

// eachToken calls do with the position and the decoded text of each string and number.
func eachToken(raw []byte, do func(at int, text []byte)) error {
	for at := 0; at < len(raw); {
		end := tokenEnd(raw, at)
		if end == at {
			at++
			continue
		}
		text, err := textOf(raw[at:end])
		if err != nil {
			return err
		}
		do(at, text)
		at = end
	}
	return nil
}

// textOf returns the decoded text of a token. The text of a number is its digits.
func textOf(token []byte) ([]byte, error) {
	if token[0] != '"' {
		return token, nil
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1], nil
	}
	var decoded string
	// encoding/json, because a string may have half a surrogate pair, which becomes U+FFFD here and stays in the
	// output.
	if err := json.Unmarshal(token, &decoded); err != nil {
		return nil, errNotJSON
	}
	return []byte(decoded), nil
}

// tokenEnd returns the end of the string or number that begins at raw[at], or at if none begins
// there. raw must be valid JSON.
func tokenEnd(raw []byte, at int) int {
	switch c := raw[at]; {
	case c == '"':
		for end := at + 1; ; end++ {
			switch raw[end] {
			case '\\':
				end++
			case '"':
				return end + 1
			}
		}
	case c == '-' || isDigit(c):
		end := at + 1
		for end < len(raw) && bytes.IndexByte([]byte("0123456789.eE+-"), raw[end]) >= 0 {
			end++
		}
		return end
	}
	return at
}
