package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxIDNumber is the largest number that is accepted as an ID. Not every program keeps larger
// numbers exactly. The SDK stores IDs as floats and truncates them to integers, so it would
// answer with the ID of another request.
const maxIDNumber = 1<<53 - 1

// refuseID returns the answer to a message whose ID the SDK would change, and nil for all
// others.
func refuseID(message []byte) []byte {
	id := idOf(message)
	if id == "" || id[0] == '"' || id == "null" {
		return nil
	}
	number, err := strconv.ParseFloat(id, 64)
	if err != nil || number == math.Trunc(number) && math.Abs(number) <= maxIDNumber {
		return nil // the SDK refuses IDs that are not numbers
	}
	return fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"the ID of a request is a string, or a whole number `+
			`of up to 53 bits"}}`,
		id, jsonrpc.CodeInvalidRequest)
}

const idInUse = "the ID is that of another request that has no answer yet"

// head is the first two members of a message of the SDK.
type head struct {
	id   jsonrpc.ID
	next string // the member after the ID: method, result or error
}

// headOf reads only the beginning of a message.
func headOf(message []byte) head {
	var h head
	d := json.NewDecoder(bytes.NewReader(message))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return h
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return h
		}
		switch key {
		case "jsonrpc":
			_, err = d.Token()
		case "id":
			var id any
			if err = d.Decode(&id); err == nil {
				h.id, err = jsonrpc.MakeID(id)
			}
		default:
			h.next, _ = key.(string)
			return h
		}
		if err != nil {
			return h
		}
	}
	return h
}

// withCode sets the code of an SDK error without a code to CodeInvalidRequest. The SDK sends
// such errors for requests at the wrong time.
func withCode(message []byte, h head) []byte {
	none := []byte(`"error":{"code":0,`)
	if h.next != "error" {
		return message
	}
	return bytes.Replace(message, none, fmt.Appendf(nil, `"error":{"code":%d,`, jsonrpc.CodeInvalidRequest), 1)
}

// cancelledID returns the ID of the request that a notification cancels.
func cancelledID(req *jsonrpc.Request) (jsonrpc.ID, bool) {
	if req.Method != "notifications/cancelled" {
		return jsonrpc.ID{}, false
	}
	var params struct {
		ID any `json:"requestId"`
	}
	if strictjson.UnmarshalOpen(req.Params, &params) != nil || params.ID == nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(params.ID)
	return id, err == nil
}
