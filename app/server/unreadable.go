package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxLevels is the maximum nesting depth of a message. It is the limit of the SDK (its
// internal/json).
const maxLevels = 1000

// unreadable returns the answer to a message that is nested too deeply, that two decoders
// could read differently, or that is an object but not a message, and nil for all others. The answer has the message's
// ID, so that the sender does not wait for another one. forHost is false for a response
// of the host: the SDK gets the answer instead of the response.
//
// The arguments of a call are left to its tool, whose error the model sees. A text that is
// not JSON is left to the transport.
func unreadable(message []byte) (answer []byte, forHost bool) {
	reason := ""
	if canon.IsDeeper(message, maxLevels) {
		reason = fmt.Sprintf("the message is JSON that is nested more than %d levels deep: write it flatter", maxLevels)
	} else if err := strictjson.Check(withoutArguments(message)); err != nil && json.Valid(message) {
		reason = "the message cannot be read: " + err.Error()
	} else if !isMessage(message) && json.Valid(message) {
		reason = notAMessage
	} else {
		return nil, false
	}
	var o Outline
	o.Write(message)
	return o.Refusal(reason), !o.IsResponse()
}

// notAMessage is the refusal of an object that is not a message, and of JSON that is not an object.
const notAMessage = "this is not a JSON-RPC 2.0 request, notification or response"

// isMessage reports whether an object with an ID has what the SDK expects of a message. The SDK drops an object with an
// ID and without a method as a response to nothing, and a request whose ID is null as a notification. All other texts
// are left to the caller: nobody waits for an answer to them.
func isMessage(text []byte) bool {
	var members map[string]json.RawMessage
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' ||
		strictjson.UnmarshalOpen(trimmed, &members) != nil {
		return true
	}
	id, ok := members["id"]
	if !ok {
		return true
	}
	method, isRequest := members["method"]
	_, isResult := members["result"]
	_, isError := members["error"]
	switch {
	case string(members["jsonrpc"]) != `"2.0"`:
		return false
	case isRequest:
		return method[0] == '"' && string(id) != "null"
	}
	return isResult || isError
}

// withoutArguments returns a message with an empty object for its params.arguments.
func withoutArguments(message []byte) []byte {
	return replaced(message, "params", func(params []byte) []byte {
		return replaced(params, "arguments", func([]byte) []byte { return []byte("{}") })
	})
}

// replaced returns an object in which change was applied to the first member with the name. If
// there is no such member, or strictjson.EachMember cannot read the object, replaced returns it
// unchanged.
func replaced(object []byte, name string, change func([]byte) []byte) []byte {
	var old []byte
	strictjson.EachMember(object, maxLevels, func(member, value []byte) bool {
		if string(member) == name {
			old = value
		}
		return old == nil
	})
	if old == nil {
		return object
	}
	start := cap(object) - cap(old) // old is a part of object, and both end where their array does
	out := append([]byte{}, object[:start]...)
	out = append(out, change(old)...)
	return append(out, object[start+len(old):]...)
}

// maxOutlined is the longest ID, and the longest name of a member, that an Outline keeps.
const maxOutlined = 1 << 10

// An Outline reads the ID of a JSON-RPC message of any length and depth, even if the message is
// malformed or cut off. Its memory use is bounded. The zero value is ready to use.
type Outline struct {
	depth      int
	inString   bool
	escaped    bool
	ended      bool   // the message's object has ended, or it is not an object
	token      []byte // the name or the plain value that is being read at depth 1
	long       bool   // the token has more than maxOutlined bytes
	name       string // of the member whose value is being read
	id         string
	isResponse bool
}

// Write reads the next part of the message. It returns no error.
func (o *Outline) Write(part []byte) (int, error) {
	for _, c := range part {
		if o.ended {
			break
		}
		o.read(c)
	}
	return len(part), nil
}

func (o *Outline) read(c byte) {
	if o.inString {
		o.keep(c)
		o.inString = c != '"' || o.escaped
		o.escaped = c == '\\' && !o.escaped
		return
	}
	switch c {
	case '"':
		o.inString = true
		o.keep(c)
	case '{', '[':
		o.ended = o.depth == 0 && c == '['
		o.depth++
		if o.depth > 1 {
			o.token = o.token[:0]
		}
	case '}', ']':
		if o.depth == 1 {
			o.endValue()
			o.ended = true
		}
		o.depth--
	case ',':
		if o.depth == 1 {
			o.endValue()
		}
	case ':':
		if o.depth == 1 {
			o.endName()
		}
	case ' ', '\t', '\r', '\n':
	default:
		o.keep(c)
	}
}

func (o *Outline) keep(c byte) {
	if o.depth != 1 {
		return
	}
	if o.long = len(o.token) >= maxOutlined; !o.long {
		o.token = append(o.token, c)
	}
}

func (o *Outline) endName() {
	o.name = ""
	if !o.long {
		_ = strictjson.UnmarshalOpen(o.token, &o.name) // an invalid name is ignored
	}
	o.isResponse = o.isResponse || o.name == "result" || o.name == "error"
	o.token, o.long = o.token[:0], false
}

func (o *Outline) endValue() {
	if o.name == "id" && o.id == "" && !o.long && len(o.token) > 0 && strictjson.Check(o.token) == nil {
		if first := o.token[0]; first == '"' || first == '-' || first >= '0' && first <= '9' {
			o.id = string(o.token)
		}
	}
	o.name, o.token, o.long = "", o.token[:0], false
}

// IsResponse reports whether the message is a response to a request with an ID.
func (o *Outline) IsResponse() bool { return o.isResponse && o.id != "" }

// Refusal returns an error in answer to the message, with the message's ID if it has one.
func (o *Outline) Refusal(reason string) []byte { return o.refusal(jsonrpc.CodeInvalidRequest, reason) }

func (o *Outline) refusal(code int64, reason string) []byte {
	id := o.id
	if id == "" {
		id = "null"
	}
	text, _ := json.Marshal(reason) // a string always encodes
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id,
		code, text)
}
