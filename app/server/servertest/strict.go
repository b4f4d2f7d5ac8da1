package servertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Ambiguous returns variants of a JSON object that a strict reader refuses, by what is wrong: members
// that are repeated, that differ from a known one in case, or that are unknown, also in the objects
// inside of it except those of the members in open. It includes texts that are not JSON.
func Ambiguous(t testing.TB, object map[string]any, open ...string) map[string]string {
	t.Helper()
	made := members(t, object, open)
	whole := marshal(t, object)
	add := func(text string) string {
		return strings.Replace(strings.TrimSuffix(whole, "}")+","+text+"}", "{,", "{", 1)
	}
	maps.Copy(made, map[string]string{
		"invalid UTF-8 in a name":   add("\"\xff\":1"),
		"invalid UTF-8 in a value":  add("\"a\":\"\xc3\x28\""),
		"half of a surrogate pair":  add(`"a":"\ud800"`),
		"a repeated, escaped name":  add(`"a":1,"\u0061":1`),
		"data after it":             whole + "{}",
		"a letter after it":         whole + "x",
		"a comma after it":          whole + ",",
		"a space that JSON has not": "\u00a0" + whole,
		"a byte order mark":         "\ufeff" + whole,
		"NaN":                       add(`"a":NaN`),
		"a comment":                 add(`"a":1/**/`),
		"a comma at the end":        add(`"a":1,`),
		"no end":                    strings.TrimSuffix(whole, "}"),
		"a list around it":          "[" + whole + "]",
	})
	return made
}

func marshal(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// members returns the variants with other members.
func members(t testing.TB, object map[string]any, open []string) map[string]string {
	t.Helper()
	whole := marshal(t, object)
	add := func(text string) string { return strings.TrimSuffix(whole, "}") + "," + text + "}" }
	made := map[string]string{"an unknown member": add(`"unknown_member":1`)}
	for name, value := range object {
		made["a repeated "+name] = add(fmt.Sprintf("%q:%s", name, marshal(t, value)))
		made[name+" in another case"] = add(fmt.Sprintf("%q:%s", strings.ToUpper(name[:1])+name[1:],
			marshal(t, another(value))))
		inner, ok := value.(map[string]any)
		if !ok || len(inner) == 0 {
			continue
		}
		for what, text := range members(t, inner, open) {
			if slices.Contains(open, name) && isUnknown(what) {
				continue
			}
			rest := maps.Clone(object)
			delete(rest, name)
			made[what+" in "+name] = strings.TrimSuffix(marshal(t, rest), "}") + fmt.Sprintf(",%q:%s}", name, text)
		}
	}
	for what, text := range made {
		made[what] = strings.Replace(text, "{,", "{", 1)
	}
	return made
}

// another returns a value of the same type. A face may take two names of one argument if the values are equal.
func another(value any) any {
	switch v := value.(type) {
	case string:
		return v + "y"
	case bool:
		return !v
	case map[string]any:
		return map[string]any{"another": 1}
	case []any:
		return []any{"another"}
	}
	return 2
}

// isUnknown reports whether a variant of Ambiguous has a member that the object has not: objects that
// are open accept it, and must not take it for another member.
func isUnknown(what string) bool {
	return strings.HasPrefix(what, "an unknown member") || strings.Contains(what, " in another case")
}

// Strict calls each tool with arguments that a strict reader refuses. The face must refuse each call,
// or refuse to read the message. A refusal of an argument with the wrong type must name it.
func (h *Host) Strict(t testing.TB) {
	t.Helper()
	tried := 0
	for _, tool := range h.tools(t) {
		example := map[string]any{}
		for name, of := range tool.InputSchema.Properties {
			example[name] = of.example()
		}
		h.wrongTypes(t, tool, example)
		for what, arguments := range Ambiguous(t, example) {
			if tool.InputSchema.AdditionalProperties != false && isUnknown(what) {
				continue
			}
			tried++
			answer := h.ask(t, fmt.Sprintf(`"method":"tools/call","params":{"name":%q,"arguments":%s}`, tool.Name,
				arguments), true)
			var read struct {
				Error  any `json:"error"`
				Result struct {
					IsError bool `json:"isError"`
				} `json:"result"`
			}
			err := strictjson.UnmarshalOpen([]byte(answer), &read)
			if err != nil || read.Error == nil && !read.Result.IsError {
				t.Errorf("%s with %s: got %.300s for %.300s, want a refusal", tool.Name, what, answer, arguments)
			}
		}
	}
	if tried < 20 {
		t.Errorf("tried %d arguments", tried)
	}
}

// wrongTypes calls a tool with each argument replaced by a value of another type.
func (h *Host) wrongTypes(t testing.TB, called tool, example map[string]any) {
	t.Helper()
	for name, of := range called.InputSchema.Properties {
		var wrong any = map[string]any{"wrong": []any{1}}
		switch of.Type {
		case "object":
			wrong = "wrong"
		case nil:
			continue // any type
		}
		arguments := maps.Clone(example)
		arguments[name] = wrong
		answer := h.Ask(t, fmt.Sprintf(`"method":"tools/call","params":{"name":%q,"arguments":%s}`, called.Name,
			marshal(t, arguments)))
		if !strings.Contains(answer, name) {
			t.Errorf("%s with a wrong %s: got %.300s, want an error with its name", called.Name, name, answer)
		}
	}
}
