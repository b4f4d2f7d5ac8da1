package codegen

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// plainValue converts to what encoding/json makes of the same text, which
// turns lone surrogates into U+FFFD.
func plainValue(v *value) any {
	switch v.kind {
	case isNull:
		return nil
	case isBool:
		return v.truth
	case isNumber:
		return json.Number(v.text)
	case isString:
		return withoutSurrogates(v.text)
	case isArray:
		out := []any{}
		for _, item := range v.items {
			out = append(out, plainValue(item))
		}
		return out
	default:
		out := map[string]any{}
		for _, m := range v.members {
			out[withoutSurrogates(m.key)] = plainValue(m.value)
		}
		return out
	}
}

func withoutSurrogates(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := nextRune(text)
		if 0xD800 <= r && r <= 0xDFFF {
			r = '\uFFFD'
		}
		b.WriteRune(r)
		text = text[size:]
	}
	return b.String()
}

func TestParseJSON(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"order of members", `{"b":1,"a":2}`, `{"b": 1, "a": 2}`},
		{"a repeated key has its last value, once", `{"a":1,"b":2,"a":3}`, `{"a": 3, "b": 2}`},
		{"digits as written", `[1.50,1E5,-0,12345678901234567890]`, `[1.50, 1E5, -0, 12345678901234567890]`},
		{"surrogates", `["\ud83e\uddea\ud800","\udc00\ud800x"]`, `["🧪\ud800", "\udc00\ud800x"]`},
		{"escapes", `"\"\\\/\b\f\n\r\t\u0041"`, `"\"\\/\u0008\u000c\n\u000d\u0009A"`},
		{"white space", " [ 1 ,\t2 ] \n", `[1, 2]`},
	} {
		v, err := parseJSON([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := string(appendCompact(nil, v)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParseJSONWithManyMembers(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(`"` + strconv.Itoa(i%2500) + `":` + strconv.Itoa(i) + `,`)
	}
	v, err := parseJSON([]byte(`{` + b.String() + `"end":0}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.members) != 2501 || v.get("7").text != "2507" {
		t.Errorf("got %d members and %q, want 2501 and the last value 2507", len(v.members), v.get("7").text)
	}
}

// FuzzParseJSON compares the parser with encoding/json, which is laxer in one
// thing: it replaces bytes that are not UTF-8. Nesting is bounded here.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+3,true,null,"\u00e9\ud83e\uddea"],"a":{}}`, `[`, `"\ud800"`, `01`, `1.`, `-`, `1e`, `"\x"`,
		`{"a" 1}`, `{,}`, `[1,]`,
		"\"\x01\"", "\"\xff\"", "\"\\n\xff\"", `tru`, `nul`, ` `, `1 2`, `"a`, `"\`, `"\u12`, strings.Repeat("[", 300),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseJSON(data)
		if err != nil {
			if json.Valid(data) && !strings.Contains(err.Error(), errUTF8.Error()) &&
				!strings.Contains(err.Error(), errDepth.Error()) {
				t.Errorf("got %v, want it read as encoding/json reads it", err)
			}
			return
		}
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("got it read, want the error of encoding/json: %v", err)
		}
		if got := plainValue(v); !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
	})
}
