// Package wire speaks newline-delimited JSON-RPC 2.0 with bounded frames, for
// the one socket between a sandbox and the host. The far side is hostile: it
// may flood, stall, imitate and send rubbish, and costs a bounded amount of
// memory whatever it does.
package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// MaxFrame is the largest frame in bytes, its newline included.
const MaxFrame = 16 << 20

// smallFrame is how large a frame may be without taking one of the few slots
// for large ones.
const smallFrame = 1 << 20

// Request is one JSON-RPC 2.0 request (JSON-RPC 2.0 Specification, section 4).
type Request struct {
	ID     json.RawMessage // a string or an integer
	Method string
	Params json.RawMessage // a JSON object
}

// A ProtocolError describes how the peer violated the protocol. It ends the connection.
type ProtocolError struct{ Reason string }

// Error returns the reason as one sentence.
func (e *ProtocolError) Error() string { return "socket protocol: " + e.Reason }

// Violation returns a *ProtocolError.
func Violation(format string, args ...any) error {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}

// ParseRequest reads one frame without its newline. Anything but a request
// with the members jsonrpc, id, method and params, each once, is refused with a
// *ProtocolError: notifications and batches have no place on this socket.
func ParseRequest(frame []byte) (Request, error) {
	if !utf8.Valid(frame) {
		return Request{}, Violation("a frame is not UTF-8")
	}
	if req, ok := plainRequest(frame); ok {
		return req, nil
	}
	var members struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := strictjson.Unmarshal(frame, &members); err != nil {
		return Request{}, Violation("a frame is not a request: %v", err)
	}
	switch {
	case members.Version != "2.0":
		return Request{}, Violation(`a frame lacks "jsonrpc":"2.0"`)
	case !validID(members.ID):
		return Request{}, Violation("a request's id is neither a string nor an integer")
	case members.Method == "":
		return Request{}, Violation("a request has no method")
	case len(members.Params) == 0:
		members.Params = json.RawMessage("{}")
	case members.Params[0] != '{':
		return Request{}, Violation("a request's params are not an object")
	}
	return Request{ID: members.ID, Method: members.Method, Params: members.Params}, nil
}

// plainRequest parses a frame in the form that our clients write: each member once and
// without escapes. It copies nothing. All other frames, and errors, are left to ParseRequest.
func plainRequest(frame []byte) (Request, bool) {
	if !json.Valid(frame) {
		return Request{}, false
	}
	var version, id, method, params []byte
	all := strictjson.EachMember(frame, canon.MaxDepth, func(name, value []byte) bool {
		switch {
		case string(name) == "jsonrpc" && version == nil:
			version = value
		case string(name) == "id" && id == nil:
			id = value
		case string(name) == "method" && method == nil:
			method = value
		case string(name) == "params" && params == nil:
			params = value
		default:
			return false
		}
		return true
	})
	named, plain := PlainText(method)
	if !all || string(version) != `"2.0"` || !validID(id) || !plain || named == "" || len(params) == 0 ||
		params[0] != '{' {
		return Request{}, false
	}
	return Request{ID: id, Method: named, Params: params}, true
}

// PlainText is the text of a JSON value that is one without escapes; false for any other value.
// The value must be valid JSON.
func PlainText(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
}

// maxID bounds an id, which is echoed: 2^53 has 16 digits, a UUID 38 bytes with quotes.
const maxID = 64

func validID(id json.RawMessage) bool {
	if len(id) == 0 || len(id) > maxID {
		return false
	}
	if id[0] == '"' {
		return true
	}
	for i, c := range id {
		if (c < '0' || c > '9') && (c != '-' || i != 0) {
			return false
		}
	}
	return true
}

// frameReader reads lines of at most MaxFrame bytes. A line longer than
// smallFrame first takes a slot from large; the caller gives it back through
// the returned release when it is done with the frame.
type frameReader struct {
	in    *bufio.Reader
	large chan struct{}
}

// next returns the next frame without its newline; io.EOF when the far side has
// hung up, be it within a frame: a process of the code may be killed at any
// time. The frame belongs to the caller.
func (r *frameReader) next(done <-chan struct{}) (frame []byte, release func(), err error) {
	release = func() {}
	for {
		part, err := r.in.ReadSlice('\n')
		if len(frame) <= smallFrame && len(frame)+len(part) > smallFrame {
			select {
			case r.large <- struct{}{}:
				release = func() { <-r.large }
			case <-done:
				return nil, release, io.ErrClosedPipe
			}
		}
		if len(frame)+len(part) > MaxFrame {
			return nil, release, Violation("a frame is larger than %d bytes", MaxFrame)
		}
		frame = append(frame, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(frame, []byte("\n")), release, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		default:
			return nil, release, err // a frame that a hang-up cut off was never sent
		}
	}
}
