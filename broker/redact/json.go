package redact

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON is Bytes for one JSON value: texts and member names are cleaned one by
// one, decoded, and everything else stays byte for byte, so that the result is
// always JSON of the same shape. A number that is found becomes a text. A text
// that is the value of a member called password, secret and the like is removed as well.
func (r *Redactor) JSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return r.cleanJSON(raw, r.find, true)
}

// HeldJSON is Held for one JSON value.
func (r *Redactor) HeldJSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return r.cleanJSON(raw, r.held.find, false)
}

var errNotJSON = errors.New("redacting: it is not JSON")

func (r *Redactor) cleanJSON(raw json.RawMessage, find func([]byte) []span, byName bool) (json.RawMessage, []Finding, error) {
	if !json.Valid(raw) {
		return nil, nil, errNotJSON
	}
	var out bytes.Buffer
	var found [][]Finding
	var name []byte // of the member whose value comes next
	copied := 0     // raw[:copied] is in out
	for at := 0; at < len(raw); {
		end := tokenEnd(raw, at)
		if end == at {
			at++
			continue
		}
		text, err := textOf(raw[at:end])
		if err != nil {
			return nil, nil, err
		}
		spans := find(text)
		if byName && raw[at] == '"' && isSecretValue(name, text) {
			spans = append(spans, span{0, len(text), "secret"})
		}
		if name = nil; isName(raw, end) {
			name = text
		}
		if cleaned, findings := r.replace(text, spans); len(findings) > 0 {
			quoted, err := json.Marshal(string(cleaned))
			if err != nil {
				return nil, nil, errNotJSON
			}
			out.Write(raw[copied:at])
			out.Write(quoted)
			copied = end
			found = append(found, findings)
		}
		at = end
	}
	if copied == 0 {
		return raw, nil, nil
	}
	out.Write(raw[copied:])
	return out.Bytes(), findings(Counts(found...)), nil
}

// textOf returns the decoded text of a token; of a number, its digits.
func textOf(token []byte) ([]byte, error) {
	if token[0] != '"' {
		return token, nil
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1], nil
	}
	var decoded string
	if err := json.Unmarshal(token, &decoded); err != nil {
		return nil, errNotJSON
	}
	return []byte(decoded), nil
}

// tokenEnd returns where the text or number that begins at raw[at] ends; at
// itself when none begins there. The JSON is valid.
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

// isName says whether the token that ends there is a member's name.
func isName(raw []byte, end int) bool {
	rest := bytes.TrimLeft(raw[end:min(len(raw), end+16)], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// secretNames are names of members whose values are secrets, whatever they look like.
var secretNames = compile(`(?i)^(?:[a-z0-9]+[_\-. ]?)*?(?:password|passwd|passphrase|pwd|secret|api[_\-]?key|apikey|(?:access|auth|private|secret|signing|encryption|client)[_\-]?key|(?:access|auth|refresh|id|bearer|session|api|oauth|personal)[_\-]?token|client[_\-]?secret|credentials?)$`)

func isSecretValue(name, value []byte) bool {
	if len(name) == 0 || len(name) > 100 || !secretNames.Match(name) || harmlessName.Match(name) {
		return false
	}
	if bytes.Contains(bytes.ToLower(name), []byte("passw")) || bytes.HasSuffix(bytes.ToLower(name), []byte("pwd")) {
		return passwordText(value)
	}
	return len(value) >= 8 && bytes.IndexByte(value, ' ') < 0 && secretText(value)
}
