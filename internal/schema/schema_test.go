package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		schema string
		value  string
		want   string // empty: it fits
	}{
		{"a value that fits", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
			`{"path":"/srv"}`, ""},
		{"a member of the wrong type", `{"properties":{"path":{"type":"string"}}}`, `{"path":7}`,
			`"/path" must be string, not number`},
		{"a member that is missing", `{"required":["path","mode"]}`, `{}`, `the value lacks 'path', 'mode'`},
		{"a misspelt member shows the known ones", `{"properties":{"path":{},"head":{}},"additionalProperties":false}`,
			`{"pth":1}`, `the value has unknown members 'pth' (known: head, path)`},
		{"a choice with null", `{"properties":{"unit":{"enum":["C",null,1.50]}}}`, `{"unit":"K"}`,
			`"/unit" must be one of "C", null, 1.50`},
		{"a choice behind a reference",
			`{"properties":{"unit":{"$ref":"#/$defs/unit"}},"$defs":{"unit":{"enum":["C",null]}}}`, `{"unit":"K"}`,
			`"/unit" must be one of "C", null`},
		{"a choice of objects", `{"properties":{"unit":{"enum":[{"a":1},[2]]}}}`, `{"unit":"K"}`,
			`"/unit" must be one of {"a":1}, [2]`},
		{"a constant", `{"properties":{"unit":{"const":null}}}`, `{"unit":"K"}`, `"/unit" must be null`},
		{"a choice", `{"properties":{"unit":{"enum":["C","F"]}}}`, `{"unit":"K"}`, `"/unit" must be one of "C", "F"`},
		{"the value is not quoted for a bound", `{"properties":{"n":{"maximum":5}}}`, `{"n":600613}`,
			`"/n" must be <= 5`},
		{"the value is not quoted for a format",
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"at":{"format":"date"}}}`,
			`{"at":"hunter2"}`, `"/at" is not a valid 'date'`},
		{"format is an annotation in 2020-12", `{"properties":{"at":{"format":"date"}}}`, `{"at":"hunter2"}`, ""},
		{"the default dialect knows prefixItems", `{"prefixItems":[{"type":"string"},{"type":"number"}]}`, `["a","b"]`,
			`"/1" must be number, not string`},
		{"draft-07 knows no prefixItems",
			`{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}`, `[1]`, ""},
		{"draft-07 knows items as a list",
			`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`,
			`"/0" must be string, not number`},
		{"unevaluatedProperties sees through allOf",
			`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `"/b" not allowed`},
		{"dynamic references",
			`{"$dynamicAnchor":"node","properties":{"next":{"$dynamicRef":"#node"},"n":{"type":"number"}}}`,
			`{"next":{"n":"x"}}`, `"/next/n" must be number, not string`},
		{"big numbers are exact", `{"properties":{"n":{"maximum":9007199254740992}}}`, `{"n":9007199254740993}`,
			`"/n" must be <= 9.007199254740992e+15`},
		{"an integer may be written with a point", `{"type":"integer"}`, `1.0`, ""},
		{"at most five problems", `{"additionalProperties":{"type":"string"}}`,
			`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, `and 2 more`},
		{"a pattern with look-ahead is not checked", `{"pattern":"^(?!x)y"}`, `"x"`, ""},
		{"and what depends on it is weakened", `{"not":{"pattern":"^(?!x)"}}`, `"x"`, ""},
		{"a property may be called not", `{"properties":{"not":{"type":"string"},"p":{"pattern":"(?=x)"}}}`,
			`{"not":1}`, `"/not" must be string, not number`},
		{"unevaluated members are let through where patterns were dropped",
			`{"patternProperties":{"(?=x)":{}},"unevaluatedProperties":false}`, `{"x":1}`, ""},
		{"additional members are let through where patterns were dropped",
			`{"patternProperties":{"(?=x)":{}},"additionalProperties":false}`, `{"x":1}`, ""},
		{"ECMA unicode escapes", `{"pattern":"^[\\u00e0-\\u{fc}]+$"}`, `"éü"`, ""},
		{"names with slashes and spaces", `{"properties":{"a b/c~d":{"type":"string"}}}`, `{"a b/c~d":1}`,
			`"/a b~1c~0d" must be string, not number`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatalf("compile: %v", err)
			}
			err = s.Validate(json.RawMessage(test.value))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %q, want it to fit", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
			var problems *schema.Problems
			if err != nil && !errors.As(err, &problems) {
				t.Errorf("got %T, want *schema.Problems", err)
			}
		})
	}
}

func TestHostileSchemas(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, schema, want string }{
		{"reads a file of the host", `{"$ref":"file://` + secret + `"}`, "outside of itself"},
		{"reads a relative file", `{"$ref":"other.json"}`, "outside of itself"},
		{"fetches an address", `{"$ref":"http://127.0.0.1:1/x"}`, "outside of itself"},
		{"fetches its dialect", `{"$schema":"http://127.0.0.1:1/x"}`, "outside of itself"},
		{"refers to itself at once", `{"$ref":"#"}`, "without end"},
		{"a reference that leads nowhere", `{"$ref":"#/$defs/none"}`, "leads nowhere"},
		{"is no schema", `{"type":"strnig"}`, "not a valid JSON Schema"},
		{"is not an object", `[1]`, "not a valid JSON Schema"},
		{"a bound that no arithmetic ends on", `{"maximum":1e999999999}`, "exponent"},
		{"too large", `{"description":"` + strings.Repeat("x", schema.MaxSchemaBytes) + `"}`, "bytes, more than"},
		{"too many values", `{"enum":[` + strings.Repeat("1,", 20000) + `2]}`, "values, more than"},
		{"too many references", `{"allOf":[` + manyRefs(1500) + `]}`, "too much to resolve"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.Compile(json.RawMessage(test.schema))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func manyRefs(n int) string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
	}
	return strings.Join(refs, ",")
}

func TestCheckIsBounded(t *testing.T) {
	doubling := `{"$defs":{"d40":{"type":"number"}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	doubling += `},"$ref":"#/$defs/d0"}`
	branching := `{"$defs":{"t":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},` +
		`{"properties":{"a":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"}`
	deep := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	items := "[" + strings.Repeat("2,", 4000) + "2]"
	words := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`"a-long-name-of-something-%d"`, i)
		}
		return strings.Join(names, ",")
	}
	members := strings.ReplaceAll(words(8000), ",", ":1,") + ":1"
	patterns := `{"patternProperties":{` + strings.ReplaceAll(members, ":1", ":true") + `}}`
	for name, test := range map[string]struct{ schema, value string }{
		"doubling in place":           {doubling, `1`},
		"doubling along the instance": {branching, deep},
		// Issue 23: the cost of these grew with the product of schema and value.
		"many choices of the wrong type": {`{"items":{"oneOf":[` + strings.Repeat(`{"type":"string"},`, 2000) +
			`{"type":"null"}]}}`, items},
		"many values of an enum":  {`{"items":{"enum":[` + words(9000) + `]}}`, items},
		"many numbers of an enum": {`{"items":{"enum":[` + strings.Repeat("1.5,", 9000) + `3]}}`, items},
		"many names that it lacks": {`{"items":{"required":[` + words(9000) + `]}}`,
			strings.ReplaceAll(items, "2", "{}")},
		"a large constant":          {`{"items":{"const":{` + members + `}}}`, items},
		"a pattern of many states":  {`{"pattern":"(a{0,30}){0,30}b$"}`, `"` + strings.Repeat("a", 1<<20) + `"`},
		"many patterns of names":    {patterns, `{` + members + `}`},
		"one name for all patterns": {patterns, `{"` + strings.Repeat("a-", 1<<19) + `":1}`},
		"values under a long name": {`{"additionalProperties":{"items":{"type":"string"}}}`,
			`{"` + strings.Repeat("a", 1<<20) + `":` + items + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(json.RawMessage(test.value)); err == nil ||
				!strings.Contains(err.Error(), "too much work") {
				t.Errorf("got %v, want it to give up", err)
			}
			if err := s.Validate(json.RawMessage(test.value)); err == nil {
				t.Error("the second check: got nil, want it to give up again")
			}
		})
	}
}

// Values and schemas that are large and usual are checked to the end.
func TestLargeValuesAreChecked(t *testing.T) {
	countries, object := make([]string, 300), make([]string, 60)
	for i := range countries {
		countries[i] = fmt.Sprintf(`"country-%d"`, i)
	}
	for i := range object {
		object[i] = fmt.Sprintf(`"member_%d":{"type":["string","null"],"pattern":"^[a-z0-9 _-]{1,64}$"}`, i)
	}
	branches := make([]string, 20)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":"k%d"},"a":{"type":"string"},`+
			`"b":{"type":"number"}},"required":["kind","a"]}`, i)
	}
	for name, test := range map[string]struct{ schema, item string }{
		"an enum":       {`{"items":{"enum":[` + strings.Join(countries, ",") + `]}}`, `"country-299"`},
		"a wide object": {`{"items":{"properties":{` + strings.Join(object, ",") + `}}}`, `{"member_1":"some text"}`},
		"a list of kinds": {`{"items":{"oneOf":[` + strings.Join(branches, ",") + `]}}`,
			`{"kind":"k19","a":"x","b":1}`},
		"a pattern": {`{"items":{"pattern":"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[a-z]{2,}$"}}`,
			`"` + strings.Repeat("a", 100) + `@b.example"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			value := "[" + strings.Repeat(test.item+",", 20_000) + test.item + "]"
			if err := s.Validate(json.RawMessage(value)); err != nil {
				t.Errorf("got %v, want no problem", err)
			}
		})
	}
}

// The problems of many values are described in linear time: the same choices are not listed for each of them.
func TestProblemsAreLinear(t *testing.T) {
	for name, test := range map[string]string{
		"an enum":          `{"items":{"enum":["a","b","c"]}}`,
		"unknown members":  `{"items":{"properties":{"a":{},"b":{}},"additionalProperties":false}}`,
		"a type":           `{"items":{"type":"string"}}`,
		"what is required": `{"items":{"required":["a","b"]}}`,
	} {
		s, err := schema.Compile(json.RawMessage(test))
		if err != nil {
			t.Fatal(err)
		}
		testenv.Linear(t, name, 16<<10, func(n int) func() {
			value := json.RawMessage("[" + strings.Repeat(`{"z":1},`, n/8) + "1]")
			return func() { _ = s.Validate(value) }
		})
	}
}

func TestCorpusCompiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "tools", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists in the corpus: %v", err)
	}
	schemas := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name         string
				InputSchema  json.RawMessage
				OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, tool := range list.Tools {
			for _, raw := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
				if raw == nil {
					continue
				}
				schemas++
				s, err := schema.Compile(raw)
				if err != nil {
					t.Errorf("%s %s: %v", filepath.Base(file), tool.Name, err)
				} else if len(s.Unchecked()) > 0 {
					t.Logf("%s %s: unchecked %q", filepath.Base(file), tool.Name, s.Unchecked())
				}
			}
		}
	}
	if schemas < 700 {
		t.Errorf("compiled %d schemas of the corpus, want at least 700", schemas)
	}
}

func TestCacheRemembers(t *testing.T) {
	var c schema.Cache
	first, err := c.Get("sha256:1", json.RawMessage(`{"type":"string"}`))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Get("sha256:1", nil)
	if err != nil || again != first {
		t.Errorf("second get: got %p, %v, want the first schema %p", again, err, first)
	}
	if _, err := c.Get("sha256:2", json.RawMessage(`{"type":7}`)); err == nil {
		t.Error("a bad schema: got nil, want an error")
	}
}

func FuzzCompileAndValidate(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"pattern":"(?=a)"}}}`, `{"a":1e3}`)
	f.Add(`{"$dynamicAnchor":"n","not":{"$dynamicRef":"#n"}}`, `[1,1]`)
	f.Add(`{"$id":"x","$ref":"x#/a","a":{"uniqueItems":true,"multipleOf":0.1}}`, `[]`)
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := schema.Compile(json.RawMessage(text))
		if err != nil {
			return
		}
		if err := s.Validate(json.RawMessage(value)); err != nil && len(err.Error()) > 8<<10 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}

// Issue 27: a member under another spelling is recognised, if only one can be meant.
func TestMisspelt(t *testing.T) {
	const properties = `"properties": {"maxCount": {}, "query": {}, "user_id": {}, "userId": {}}`
	const open = `{` + properties + `}`
	for name, test := range map[string]struct {
		text, value string
		want        map[string]string
	}{
		"snake case": {open, `{"max_count": 1, "query": 2}`,
			map[string]string{"max_count": "maxCount"}},
		"capitals": {open, `{"MaxCount": 1, "Query": 2}`,
			map[string]string{"MaxCount": "maxCount", "Query": "query"}},
		"known":            {open, `{"maxCount": 1}`, nil},
		"unknown":          {open, `{"limit": 1}`, nil},
		"given as well":    {open, `{"max_count": 1, "maxCount": 2}`, nil},
		"given twice":      {open, `{"max_count": 1, "max-count": 2}`, nil},
		"two can be meant": {open, `{"USERID": 1}`, nil},
		"closed": {`{"additionalProperties": false, ` + properties + `}`, `{"max_count": 1}`,
			map[string]string{"max_count": "maxCount"}},
		"open": {`{"additionalProperties": true, ` + properties + `}`, `{"max_count": 1}`, nil},
		"others described": {`{"additionalProperties": {"type": "number"}, ` + properties + `}`, `{"max_count": 1}`,
			nil},
		"patterns described": {`{"patternProperties": {"^m": {}}, ` + properties + `}`, `{"max_count": 1}`, nil},
		"nothing described":  {`{}`, `{"max_count": 1}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var value map[string]any
			if err := json.Unmarshal([]byte(test.value), &value); err != nil {
				t.Fatal(err)
			}
			if got := s.Misspelt(value); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
