package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// decodeMessage reads one JSON-RPC message. Unlike the SDK, which would choke
// on its own output, it refuses a method without a name.
func decodeMessage(text []byte) (jsonrpc.Message, error) {
	if response, ok := plainResponse(text); ok {
		return response, nil
	}
	message, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, err
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.Method == "" {
		return nil, errors.New("a method without a name")
	}
	return message, nil
}

// maxPlainID is how many digits an ID has at most that plainResponse reads: all of them
// are exact as a float64, which is what the SDK makes of it.
const maxPlainID = 15

// plainResponse reads what nearly every answer to a call is: an object of the members
// jsonrpc, id and result, each once and spelt without escapes, whose id is a whole number
// and whose result is an object. The SDK's own reader takes 32 KiB of memory for each
// message, which it clears and the collector has to find again. The result stays in text.
func plainResponse(text []byte) (*jsonrpc.Response, bool) {
	text = bytes.TrimSpace(text)
	var version, id, result []byte
	if len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	for rest := text[1:]; ; {
		name, value, behind, ok := member(rest)
		if !ok {
			return nil, false
		}
		var to *[]byte
		switch string(name) {
		case `"jsonrpc"`:
			to = &version
		case `"id"`:
			to = &id
		case `"result"`:
			to = &result
		}
		if to == nil || *to != nil {
			return nil, false
		}
		*to = value
		if behind[0] == '}' {
			if len(behind) > 1 {
				return nil, false
			}
			break
		}
		rest = behind[1:]
	}
	number, ok := plainNumber(id)
	if !ok || string(version) != `"2.0"` || len(result) == 0 || result[0] != '{' || !json.Valid(result) {
		return nil, false
	}
	made, err := jsonrpc.MakeID(float64(number))
	if err != nil {
		return nil, false
	}
	return &jsonrpc.Response{ID: made, Result: json.RawMessage(result)}, true
}

func plainNumber(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > maxPlainID || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(string(text), 10, 64)
	return number, err == nil
}

// member reads the first member of what stands in an object's braces: its quoted name, its
// value, and what is behind, which begins with a comma or the closing brace.
func member(text []byte) (name, value, behind []byte, ok bool) {
	text = trimLeft(text)
	end := textEnd(text)
	if end < 0 || bytes.IndexByte(text[:end], '\\') >= 0 {
		return nil, nil, nil, false
	}
	name, text = text[:end], trimLeft(text[end:])
	if len(text) == 0 || text[0] != ':' {
		return nil, nil, nil, false
	}
	text = trimLeft(text[1:])
	if end = valueEnd(text); end <= 0 {
		return nil, nil, nil, false
	}
	value, behind = text[:end], trimLeft(text[end:])
	return name, value, behind, len(behind) > 0 && (behind[0] == ',' || behind[0] == '}')
}

// valueEnd is where the value at the beginning of text ends; negative where it does not, or
// where it is nested deeper than the SDK reads.
func valueEnd(text []byte) int {
	switch {
	case len(text) == 0:
		return -1
	case text[0] == '"':
		return textEnd(text)
	case text[0] != '{':
		return bytes.IndexAny(text, " \t\r\n,}]")
	}
	levels := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			end := textEnd(text[at:])
			if end < 0 {
				return -1
			}
			at += end - 1
		case '{', '[':
			if levels++; levels >= maxLevels { // the message itself is one
				return -1
			}
		case '}', ']':
			if levels--; levels == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// textEnd is where the quoted text at the beginning of text ends; negative where there
// is none or it does not end.
func textEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return -1
	}
	for at := 1; ; {
		next := bytes.IndexByte(text[at:], '"')
		if next < 0 {
			return -1
		}
		at += next
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if at++; escapes%2 == 0 {
			return at
		}
	}
}

func trimLeft(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }
