package strictjson_test

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// form has a member of every kind that our types have.
type form struct {
	Name  string            `json:"name"`
	Size  int               `json:"size"`
	Share float64           `json:"share"`
	Exact json.Number       `json:"exact"`
	Done  bool              `json:"done"`
	Tags  []string          `json:"tags"`
	Meta  map[string]string `json:"_meta"`
	Raw   json.RawMessage   `json:"raw"`
	Any   any               `json:"any"`
	Inner *struct {
		Deep string `json:"deep"`
	} `json:"inner"`
}

var deep = strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)

// ambiguous are texts that two decoders read differently, or one reads without end (issue 24).
var ambiguous = []struct{ name, text, want string }{
	{"a name twice", `{"name":"supervised","name":"trusted"}`, `the JSON has the name "name" twice in one object`},
	{"a name twice, written differently", `{"name":"a","n\u0061me":"b"}`,
		`the JSON has the name "name" twice in one object`},
	{"a name twice in a part that stays as it is", `{"raw":[{"a":1,"a":2}]}`,
		`the JSON has the name "a" twice in one object`},
	{"a name twice in a map", `{"_meta":{"a":"x","a":"y"}}`, `the JSON has the name "a" twice in one object`},
	{"a name twice in a value of any type", `{"any":{"a":{"b":1,"b":1}}}`,
		`the JSON has the name "b" twice in one object`},
	{"half of a surrogate pair", `{"name":"\ud800"}`, `the JSON has half a surrogate pair`},
	{"the second half alone", `{"name":"\udc00 "}`, `the JSON has half a surrogate pair`},
	{"half of a pair in a name", `{"_meta":{"\ud800":"x"}}`, `the JSON has half a surrogate pair`},
	{"bytes that are not UTF-8", "{\"name\":\"\xff\"}", `the JSON is not valid UTF-8`},
	{"bytes that are not UTF-8 in a part that stays as it is", "{\"raw\":\"\xff\"}", `the JSON is not valid UTF-8`},
	{"a second value", `{"name":"a"}{"name":"b"}`, `there is more after the end of the JSON value`},
	{"something behind the value", `{"name":"a"}]`, `there is more after the end of the JSON value`},
	{"10,001 levels", `{"raw":` + deep + `}`, `the JSON is nested too deeply`},
	{"not JSON", `{"name" 7}`, `the text is not JSON, at byte 9`},
	{"half a value", `{"name":`, `the JSON ends too early`},
	{"nothing", ``, `the JSON ends too early`},
	{"a byte order mark", "\ufeff{}", `the text is not JSON, at byte 1`},
	{"a comment", `{} // a`, `there is more after the end of the JSON value`},
	{"NaN", `{"share":NaN}`, `the text is not JSON, at byte 10`},
}

func TestAmbiguous(t *testing.T) {
	for _, test := range ambiguous {
		t.Run(test.name, func(t *testing.T) {
			raw := []byte(test.text)
			stream := func(into any) error {
				in := strictjson.NewDecoder(strings.NewReader(test.text))
				if err := in.Decode(into); err != nil {
					return err
				}
				return in.Decode(into)
			}
			for name, err := range map[string]error{
				"Unmarshal":     strictjson.Unmarshal(raw, new(form)),
				"UnmarshalOpen": strictjson.UnmarshalOpen(raw, new(form)),
				"into any":      strictjson.Unmarshal(raw, new(any)),
				"Check":         strictjson.Check(raw),
			} {
				if err == nil || err.Error() != test.want {
					t.Errorf("%s: got %v, want %s", name, err, test.want)
				}
			}
			if _, err := strictjson.Value(raw); err == nil {
				t.Error("Value: got nil, want an error")
			}
			if err := stream(new(form)); err == nil && !strings.Contains(test.text, "}{") {
				t.Error("Decoder: got nil, want an error")
			}
		})
	}
}

func TestForm(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a number in the place of a string", `{"name":7}`, `"name" is a number, not a string`},
		{"an object in the place of a number", `{"share":{}}`, `"share" is an object, not a number in its range`},
		{"a list in the place of true", `{"done":[]}`, `"done" is a list, not true or false`},
		{"true in the place of a list", `{"tags":true}`, `"tags" is true or false, not a list`},
		{"a string in the place of an object", `{"_meta":"x"}`, `"_meta" is a string, not an object`},
		{"a number that does not fit", `{"size":1.5}`, `"size" is the number 1.5, not a whole number in its range`},
		{"a number that no float holds", `{"any":1e999}`, `"any" is the number 1e999, not a number in its range`},
		{"a member far inside", `{"inner":{"deep":7}}`, `"inner.deep" is a number, not a string`},
		{"an item", `{"tags":["a",7]}`, `"tags[1]" is a number, not a string`},
		{"a list in the place of everything", `[]`, `the JSON value is a list, not an object`},
		{"a number among strings", `{"_meta":{"a":7}}`, `"_meta.a" is a number, not a string`},
		{"an unknown member", `{"nam":"x"}`, `unknown member "nam"`},
		{"an unknown member far inside", `{"inner":{"x":1}}`, `unknown member "inner.x"`},
		{"a member in capitals", `{"Name":"x"}`, `unknown member "Name": write "name"`},
		{"a member twice, once in capitals", `{"name":"x","NAME":"y"}`, `unknown member "NAME": write "name"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strictjson.Unmarshal([]byte(test.text), new(form)); got == nil || got.Error() != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// A document that others may extend is decoded without folding the case of its members.
func TestUnmarshalOpen(t *testing.T) {
	var f form
	err := strictjson.UnmarshalOpen(
		[]byte(`{"name":"a","NAME":"b","\u017fize":7,"new":{},"exact":1.50,"raw":{"x":1e1}}`), &f)
	if err != nil || f.Name != "a" || f.Size != 0 || f.Exact != "1.50" || string(f.Raw) != `{"x":1e1}` {
		t.Errorf("got %+v %v, want the members that are spelt as they are declared", f, err)
	}
}

func TestDecoder(t *testing.T) {
	in := strictjson.NewDecoder(strings.NewReader("{\"name\":\"a\"}{\"name\":\"b\",\"x\":1}\n"))
	var a, b form
	if err := errors.Join(in.Decode(&a), in.DecodeOpen(&b)); err != nil || a.Name != "a" || b.Name != "b" {
		t.Errorf("got %+v %+v %v, want a and b", a, b, err)
	}
	if err := in.Decode(&a); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v, want io.EOF", err)
	}
}

var goWords = regexp.MustCompile(`\b(form|struct|Go|int|float64|bool|slice|map|json|jsontext|field|type|unmarshal)\b`)

// No error names a Go type or a value that is a string.
func TestNoGoTypes(t *testing.T) {
	value := rapid.SampledFrom([]string{`7`, `1e999`, `"secret"`, `true`, `null`, `[]`, `{}`, `[{}]`, `{"deep":[]}`,
		`{"a":7}`, ``, `x`})
	key := rapid.SampledFrom([]string{"name", "size", "share", "exact", "done", "tags", "_meta", "inner", "other"})
	rapid.Check(t, func(r *rapid.T) {
		text := `{"` + key.Draw(r, "key") + `":` + value.Draw(r, "value") + `}`
		err := strictjson.Unmarshal([]byte(text), new(form))
		if err != nil && (goWords.MatchString(err.Error()) || strings.Contains(err.Error(), "secret")) {
			r.Fatalf("got %v for %s, want neither a Go type nor a string of the text", err, text)
		}
	})
}

// encoding/json reads an accepted text in the same way.
func FuzzUnmarshal(f *testing.F) {
	for _, test := range ambiguous {
		f.Add(test.text)
	}
	f.Add(`{"a":[1,2.5,"\ud83d\ude00",{"b":null,"B":true}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var strict, std any
		err := strictjson.Unmarshal([]byte(text), &strict)
		if checked := strictjson.Check([]byte(text)); checked != nil && err == nil {
			t.Fatalf("Unmarshal accepts what Check refuses: %v", checked)
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal([]byte(text), &std); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		a, _ := json.Marshal(strict)
		b, _ := json.Marshal(std)
		if string(a) != string(b) {
			t.Errorf("got %s, encoding/json has %s", a, b)
		}
	})
}
