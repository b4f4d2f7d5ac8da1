package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// maxLevels is how deep the arrays and objects of a message may be inside each other:
// the SDK reads no deeper (its internal/json).
const maxLevels = 1000

// tooDeep returns what becomes of a message that is nested too deep to be read: an error
// under its own ID, so that who waits for an answer gets one. forHost says whether that goes
// back to the host, as to a request, or on to the SDK, as a response of the host would.
func tooDeep(message []byte) (answer []byte, forHost, deep bool) {
	if !canon.IsDeeper(message, maxLevels) {
		return nil, false, false
	}
	id, isResponse := outline(message)
	text, _ := json.Marshal(fmt.Sprintf("the message is JSON that is nested more than %d levels deep: write it flatter", maxLevels)) // a string always encodes
	answer = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, jsonrpc.CodeInvalidRequest, text)
	return answer, !isResponse, true
}

// outline reads the ID of a message of any depth, null where it has none that is a text or
// a number, and whether the message is a response.
func outline(message []byte) (id string, isResponse bool) {
	id = "null"
	in := json.NewDecoder(bytes.NewReader(message))
	in.UseNumber()
	if token, err := in.Token(); err != nil || token != json.Delim('{') {
		return id, false
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			break
		}
		value, err := in.Token()
		if err != nil {
			break
		}
		switch value.(type) {
		case string, json.Number:
			if name == "id" {
				text, _ := json.Marshal(value) // either always encodes
				id = string(text)
			}
		case json.Delim:
			isResponse = isResponse || name == "result" || name == "error"
			if !skipNested(in) {
				return id, isResponse && id != "null"
			}
		}
	}
	return id, isResponse && id != "null"
}

// skipNested reads on behind the end of the array or object that was begun.
func skipNested(in *json.Decoder) bool {
	for depth := 1; depth > 0; {
		token, err := in.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return true
}
