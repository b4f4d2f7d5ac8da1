package upstream

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/strictjson"
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
	var version, id, result []byte
	all := strictjson.EachMember(text, maxLevels-1, func(name, value []byte) bool {
		switch {
		case string(name) == "jsonrpc" && version == nil:
			version = value
		case string(name) == "id" && id == nil:
			id = value
		case string(name) == "result" && result == nil:
			result = value
		default:
			return false
		}
		return true
	})
	number, ok := plainNumber(id)
	if !all || !ok || string(version) != `"2.0"` || len(result) == 0 || result[0] != '{' || !json.Valid(result) {
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
