package upstream

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxIDBytes is the longest ID that is looked for; ours are short numbers.
const maxIDBytes = 64

// idScanner finds the "id" member of a JSON object that arrives in pieces and is too large to
// keep, so that the caller waiting for that response gets an error.
type idScanner struct {
	depth    int
	inText   bool
	escaped  bool
	isKey    bool   // the text that is being read, or was read last, is a key of the outer object
	key      []byte // that key, as far as it may be "id"
	value    []byte // the bytes of the member "id"
	inID     bool
	foundID  bool
	response bool // a member "result" or "error" went by
}

// write takes the next piece.
func (s *idScanner) write(piece []byte) {
	for _, c := range piece {
		s.step(c)
	}
}

func (s *idScanner) step(c byte) {
	if s.inID {
		if s.depth == 1 && !s.inText && (c == ',' || c == '}') {
			s.inID, s.foundID = false, len(s.value) <= maxIDBytes
		} else if len(s.value) <= maxIDBytes {
			s.value = append(s.value, c)
		}
	}
	if s.inText {
		s.stepText(c)
		return
	}
	switch c {
	case '"':
		s.inText = true
		if s.isKey {
			s.key = s.key[:0]
		}
	case '{', '[':
		s.depth++
		s.isKey = s.depth == 1 && c == '{'
	case '}', ']':
		s.depth--
	case ',':
		s.isKey = s.depth == 1
	case ':':
		if s.depth == 1 && s.isKey {
			s.isKey = false
			s.startMember()
		}
	}
}

func (s *idScanner) stepText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inText = false
		return
	}
	if s.isKey && len(s.key) <= len("result") {
		s.key = append(s.key, c)
	}
}

func (s *idScanner) startMember() {
	switch string(s.key) {
	case "id":
		s.inID, s.value = true, s.value[:0]
	case "result", "error":
		s.response = true
	}
}

// id returns the ID of the response that went by.
func (s *idScanner) id() (jsonrpc.ID, bool) {
	if !s.foundID || !s.response {
		return jsonrpc.ID{}, false
	}
	var value any
	if err := strictjson.UnmarshalOpen(s.value, &value); err != nil || value == nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}

// splitArray returns the items of a JSON array, or nil if text is not an array.
func splitArray(text []byte) []json.RawMessage {
	var items []json.RawMessage
	if err := strictjson.UnmarshalOpen(text, &items); err != nil {
		if isDeep(text) {
			return splitDeep(text)
		}
		return nil
	}
	return items
}

// splitDeep is like splitArray for texts that are too deep for encoding/json. Its items may be
// invalid JSON.
func splitDeep(text []byte) (items []json.RawMessage) {
	depth, from := 0, 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '[', '{':
			if depth++; depth == 1 {
				from = at + 1
			}
		case ']', '}', ',':
			if depth == 1 {
				items, from = append(items, text[from:at]), at+1
			}
			if text[at] != ',' {
				depth--
			}
		}
	}
	return items
}
