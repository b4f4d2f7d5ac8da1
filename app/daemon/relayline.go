package daemon

import (
	"bytes"
	"encoding/json"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// message holds the members of a message that the relay reads.
type message struct {
	line   []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// messagesOf decodes a line with one message or a batch. It returns nil for an invalid line,
// to which the backend replies.
func messagesOf(line []byte) []message {
	var one message
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if line[0] == '[' {
		var several []message
		if strictjson.UnmarshalOpen(line, &several) != nil {
			return nil
		}
		return several
	}
	if strictjson.UnmarshalOpen(line, &one) != nil {
		return nil
	}
	one.line = line
	return []message{one}
}

// id returns the bytes of the ID; "" if the message has none.
func (m message) id() string {
	if string(m.ID) == "null" {
		return ""
	}
	return string(m.ID)
}

func (m message) isRequest() bool  { return m.Method != "" && m.id() != "" }
func (m message) isResponse() bool { return m.Method == "" && m.id() != "" }

// withMember returns a message with another value for one member; nil if line is not an object.
func withMember(line []byte, name string, value json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalOpen(line, &members) != nil {
		return nil
	}
	members[name] = value
	changed, err := server.Encode(members)
	if err != nil {
		return nil
	}
	return append(changed, '\n')
}
