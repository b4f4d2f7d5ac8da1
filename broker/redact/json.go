package redact

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON is Bytes for one JSON value: texts and member names are cleaned one by
// one, decoded, and everything else stays byte for byte, so that the result is
// always JSON of the same shape. A number that is found becomes a text.
func (r *Redactor) JSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return cleanJSON(raw, r.Bytes)
}

// HeldJSON is Held for one JSON value.
func (r *Redactor) HeldJSON(raw json.RawMessage) (json.RawMessage, []Finding, error) {
	return cleanJSON(raw, r.Held)
}

func cleanJSON(raw json.RawMessage, clean func([]byte) ([]byte, []Finding)) (json.RawMessage, []Finding, error) {
	if !json.Valid(raw) {
		return nil, nil, errors.New("redacting: it is not JSON")
	}
	var out bytes.Buffer
	var found [][]Finding
	copied := 0 // raw[:copied] is in out
	for at := 0; at < len(raw); {
		end := tokenEnd(raw, at)
		if end == at {
			at++
			continue
		}
		text := raw[at:end]
		if raw[at] == '"' {
			var decoded string
			if err := json.Unmarshal(text, &decoded); err != nil {
				return nil, nil, errors.New("redacting: it is not JSON")
			}
			text = []byte(decoded)
		}
		if cleaned, findings := clean(text); len(findings) > 0 {
			quoted, err := json.Marshal(string(cleaned))
			if err != nil {
				return nil, nil, errors.New("redacting: it is not JSON")
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
	case c == '-' || (c >= '0' && c <= '9'):
		end := at + 1
		for end < len(raw) && bytes.IndexByte([]byte("0123456789.eE+-"), raw[end]) >= 0 {
			end++
		}
		return end
	}
	return at
}
