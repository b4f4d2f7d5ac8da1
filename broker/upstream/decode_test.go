package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestPlainResponses(t *testing.T) {
	const text = `{"content":[{"type":"text","text":"a \"quoted\\\" } word"}],"n":{}}`
	for name, test := range map[string]struct {
		text  string
		plain bool
	}{
		"as go-sdk writes it":        {`{"jsonrpc":"2.0","id":7,"result":` + text + `}`, true},
		"as the TypeScript SDK does": {`{"result":` + text + `,"jsonrpc":"2.0","id":7}`, true},
		"with spaces": {" { \"jsonrpc\" : \"2.0\" ,\t\"id\" : 7 , \"result\" : " + text + " } \r",
			true},
		"an empty result":             {`{"jsonrpc":"2.0","id":0,"result":{}}`, true},
		"an error":                    {`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, false},
		"a request":                   {`{"jsonrpc":"2.0","id":7,"method":"ping"}`, false},
		"another member":              {`{"jsonrpc":"2.0","id":7,"result":{},"more":1}`, false},
		"a result twice":              {`{"jsonrpc":"2.0","id":7,"result":{},"result":{"a":1}}`, false},
		"an escaped name":             {`{"jsonrpc":"2.0","id":7,"r\u0065sult":{}}`, false},
		"a text as ID":                {`{"jsonrpc":"2.0","id":"7","result":{}}`, false},
		"an ID that is no whole one":  {`{"jsonrpc":"2.0","id":7.5,"result":{}}`, false},
		"an ID with a zero before it": {`{"jsonrpc":"2.0","id":07,"result":{}}`, false},
		"an ID of many digits":        {`{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`, false},
		"no ID":                       {`{"jsonrpc":"2.0","result":{}}`, false},
		"an array as result":          {`{"jsonrpc":"2.0","id":7,"result":[]}`, false},
		"a result that is no JSON":    {`{"jsonrpc":"2.0","id":7,"result":{"a":]}}`, false},
		"a result that does not end":  {`{"jsonrpc":"2.0","id":7,"result":{"a":"}}`, false},
		"another version":             {`{"jsonrpc":"1.0","id":7,"result":{}}`, false},
		"something behind it":         {`{"jsonrpc":"2.0","id":7,"result":{}} {}`, false},
		"a comma behind it":           {`{"jsonrpc":"2.0","id":7,"result":{},}`, false},
		"nothing":                     {``, false},
		"a brace":                     {`{`, false},
	} {
		got, ok := plainResponse([]byte(test.text))
		if ok != test.plain {
			t.Errorf("%s: got %v, want %v", name, ok, test.plain)
		}
		want, err := jsonrpc.DecodeMessage([]byte(strings.TrimSpace(test.text)))
		if !ok {
			continue
		}
		if err != nil {
			t.Errorf("%s: got %+v, but the SDK says %v", name, got, err)
		} else if want := want.(*jsonrpc.Response); want.ID != got.ID || string(want.Result) != string(got.Result) ||
			want.Error != nil {
			t.Errorf("%s: got %v %s, want %v %s", name, got.ID.Raw(), got.Result, want.ID.Raw(), want.Result)
		}
	}
}

// A response that is read without the SDK is what the SDK reads.
func FuzzPlainResponse(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a \"b\\"}]}}`)
	f.Add(`{"result":{"a":[1,{"b":null}]} , "id":1,"jsonrpc":"2.0"}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := plainResponse([]byte(text))
		if !ok {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q was read and is no JSON", text)
		}
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatalf("%q was read; the SDK says %v", text, err)
		}
		want, is := message.(*jsonrpc.Response)
		if !is || want.ID != got.ID || string(want.Result) != string(got.Result) || want.Error != nil {
			t.Errorf("got %v %s, want %+v", got.ID.Raw(), got.Result, want)
		}
	})
}
