package strictjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

func ExampleEachMember() {
	strictjson.EachMember([]byte(`{"id": 7, "result": {"a": "}"}}`), 10, func(name, value []byte) bool {
		fmt.Printf("%s is %s\n", name, value)
		return true
	})
	// Output:
	// id is 7
	// result is {"a": "}"}
}

func TestEachMember(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for name, test := range map[string]struct {
		text, want string
		all        bool
	}{
		"nothing in it": {`{}`, "", true},
		"blanks in it":  {" {\n} ", "", true},
		"values of every kind": {`{"a":1,"b":"x","c":[1,{"d":"]"}],"e":{},"f":null,"g":-1.5e3}`,
			`a=1 b="x" c=[1,{"d":"]"}] e={} f=null g=-1.5e3`, true},
		"blanks between":           {"{ \"a\" :\t1 ,\r\n\"b\" : [ 2 ] }", `a=1 b=[ 2 ]`, true},
		"quotes in a text":         {`{"a":"\"","b":"\\","c":"\\\""}`, `a="\"" b="\\" c="\\\""`, true},
		"a name twice":             {`{"a":1,"a":2}`, "a=1 a=2", true},
		"an empty name":            {`{"":1}`, "=1", true},
		"as deep as may be":        {`{"a":` + deep(5) + `}`, "a=" + deep(5), true},
		"deeper":                   {`{"a":1,"b":` + deep(6) + `}`, "a=1", false},
		"an escape in a name":      {`{"a":1,"\u0062":2}`, "a=1", false},
		"nothing":                  {``, "", false},
		"blanks":                   {` `, "", false},
		"an array":                 {`[1]`, "", false},
		"a brace":                  {`{`, "", false},
		"a name":                   {`{"a"`, "", false},
		"a name that does not end": {`{"a`, "", false},
		"no value":                 {`{"a":}`, "", false},
		"a value that goes on":     {`{"a":[1}`, "", false},
		"a comma at the end":       {`{"a":1,}`, "a=1", false},
		"a member without a comma": {`{"a":1 "b":2}`, "", false},
		"something behind it":      {`{"a":1}{}`, "a=1", false},
	} {
		var got []string
		all := strictjson.EachMember([]byte(test.text), 5, func(name, value []byte) bool {
			got = append(got, fmt.Sprintf("%s=%s", name, value))
			return true
		})
		if strings.Join(got, " ") != test.want || all != test.all {
			t.Errorf("%s: got %v %v, want %v %v", name, got, all, test.want, test.all)
		}
	}
	if strictjson.EachMember([]byte(`{"a":1}`), 5, func(_, _ []byte) bool { return false }) {
		t.Error("stopped: got true, want false")
	}
}

// Of a valid JSON text, the members are those that a decoder finds.
func FuzzEachMember(f *testing.F) {
	f.Add(`{"a":1,"b":["]",{"c":"\\\""}] , "a":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		found := map[string]json.RawMessage{}
		all := strictjson.EachMember([]byte(text), 10_000, func(name, value []byte) bool {
			found[string(name)] = value
			return true
		})
		var want map[string]json.RawMessage
		if !all || !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return // a decoder reads what is not UTF-8 as U+FFFD
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if len(found) != len(want) {
			t.Errorf("got %d members, want %d", len(found), len(want))
		}
		for name, value := range want {
			if got := found[name]; !bytes.Equal(got, value) {
				t.Errorf("%q: got %s, want %s", name, got, value)
			}
		}
	})
}
