package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON with comments and trailing commas, as VS Code and Cursor
// accept it.
var jsonFormat = format{name: "JSON", decode: decodeJWCC, edit: editJWCC, raw: rawJWCC, encode: encodeJSON}

// openCodeFormat is jsonFormat with entries as OpenCode writes them.
var openCodeFormat = format{name: "JSON", decode: decodeJWCC, edit: editJWCC, raw: rawJWCC, encode: encodeOpenCode}

func encodeOpenCode(key, _ string, value written) (string, error) {
	var timeout any = value.Timeout
	if key != "mcp" {
		timeout = map[string]int{"request": value.Timeout}
	}
	return textOf(struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Timeout     any               `json:"timeout"`
	}{"local", append([]string{value.Command}, value.Args...), value.Env, timeout})
}

func parseJWCC(data []byte) (hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	value, err := hujson.Parse(bytes.Clone(data)) // editing the value modifies the text
	if err != nil {
		return value, fmt.Errorf("not valid JSON: %w", err)
	}
	if _, ok := value.Value.(*hujson.Object); !ok {
		return value, fmt.Errorf("the file is not a JSON object")
	}
	return value, nil
}

func decodeJWCC(data []byte) (map[string]any, error) {
	value, err := parseJWCC(data)
	if err != nil {
		return nil, err
	}
	value.Standardize()
	return decodeJSON(value.Pack())
}

// member returns the object's member with the name. If there are several, it returns the last, like
// encoding/json.
func member(object *hujson.Object, name string) (int, *hujson.Value) {
	for i := len(object.Members) - 1; i >= 0; i-- {
		if literal, ok := object.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			return i, &object.Members[i].Value
		}
	}
	return -1, nil
}

// descend returns the object that has the last part of a key, and this part, like nested.
func descend(object *hujson.Object, key string) (*hujson.Object, string) {
	if first, rest, ok := strings.Cut(key, "."); ok {
		if _, value := member(object, first); value != nil {
			if inner, ok := value.Value.(*hujson.Object); ok {
				return descend(inner, rest)
			}
		}
	}
	return object, key
}

func editJWCC(data []byte, key string, remove []string, add map[string]string) ([]byte, error) {
	root, err := parseJWCC(data)
	if err != nil {
		return nil, err
	}
	top, key := descend(root.Value.(*hujson.Object), key)
	_, value := member(top, key)
	if value == nil {
		insert(top, key, hujson.Value{Value: &hujson.Object{}}, "")
		_, value = member(top, key)
	}
	servers, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", key)
	}
	unit := memberIndent(root.Value.(*hujson.Object))
	indent := memberIndent(top) + unit
	for _, name := range remove {
		for i, _ := member(servers, name); i >= 0; i, _ = member(servers, name) {
			indent = memberIndent(servers)
			servers.Members = slices.Delete(servers.Members, i, i+1)
		}
	}
	if len(servers.Members) > 0 {
		indent = memberIndent(servers)
	}
	for _, name := range sortedKeys(add) {
		parsed, err := hujson.Parse([]byte(reindent(add[name], plainIndent, unit, indent)))
		if err != nil {
			return nil, fmt.Errorf("writing the entry %q: %w", name, err)
		}
		insert(servers, name, parsed, indent)
	}
	if len(servers.AfterExtra) == 0 && len(servers.Members) > 0 &&
		strings.Contains(string(servers.Members[0].Name.BeforeExtra), "\n") {
		servers.AfterExtra = hujson.Extra("\n" + strings.TrimSuffix(indent, unit))
	}
	return root.Pack(), nil
}

// insert appends a member on a separate line, indented like its siblings. If it has none, it is
// indented by indent, or by two spaces if indent is empty.
func insert(object *hujson.Object, name string, value hujson.Value, indent string) {
	if len(object.Members) > 0 {
		indent = memberIndent(object)
	} else if indent == "" {
		indent = plainIndent
	}
	if len(object.Members) == 0 && len(object.AfterExtra) == 0 {
		object.AfterExtra = hujson.Extra("\n" + strings.TrimSuffix(indent, plainIndent))
	}
	trailing := false
	if n := len(object.Members); n > 0 {
		trailing = object.Members[n-1].Value.AfterExtra != nil // a trailing comma
	}
	literal, _ := json.Marshal(name)
	added := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: hujson.Extra("\n" + indent),
		Value: hujson.Literal(literal)}, Value: value}
	added.Value.BeforeExtra = hujson.Extra(" ")
	added.Value.AfterExtra = nil
	if trailing {
		added.Value.AfterExtra = hujson.Extra{}
	}
	// A comment after the last member stays there; the comma is written before it.
	if comment := object.AfterExtra; len(object.Members) > 0 && bytes.ContainsAny(comment, "/") {
		at := bytes.LastIndexByte(comment, '\n')
		if at < 0 {
			at = len(comment)
		}
		added.Name.BeforeExtra = append(append(hujson.Extra{}, comment[:at]...), added.Name.BeforeExtra...)
		object.AfterExtra = append(hujson.Extra{}, comment[at:]...)
	}
	object.Members = append(object.Members, added)
}

// memberIndent returns the white space before the first member on its line.
func memberIndent(object *hujson.Object) string {
	if len(object.Members) == 0 {
		return plainIndent
	}
	extra := string(object.Members[0].Name.BeforeExtra)
	if i := strings.LastIndexByte(extra, '\n'); i >= 0 {
		if indent := extra[i+1:]; strings.TrimSpace(indent) == "" && indent != "" {
			return indent
		}
	}
	return plainIndent
}

func rawJWCC(data []byte, key string, names []string) (map[string]string, error) {
	root, err := parseJWCC(data)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	top, last := descend(root.Value.(*hujson.Object), key)
	_, value := member(top, last)
	if value == nil {
		return out, nil
	}
	servers, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", key)
	}
	unit, indent := memberIndent(root.Value.(*hujson.Object)), memberIndent(servers)
	for _, name := range names {
		if _, found := member(servers, name); found != nil {
			text := hujson.Value{Value: found.Value}.String()
			out[name] = reindent(strings.ReplaceAll(text, "\n"+indent, "\n"), unit, plainIndent, "")
		}
	}
	return out, nil
}

// plainIndent is one level of indentation in the texts of members.
const plainIndent = "  "

// reindent replaces each unit at the start of a line by another, and puts base
// before every line but the first.
func reindent(text, unit, by, base string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines[1:] {
		levels := ""
		for strings.HasPrefix(line, unit) {
			line, levels = line[len(unit):], levels+by
		}
		lines[i+1] = base + levels + line
	}
	return strings.Join(lines, "\n")
}

func encodeJSON(_, _ string, value written) (string, error) { return textOf(value) }

// textOf returns a value as indented JSON.
func textOf(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", plainIndent)
	err := encoder.Encode(value)
	return strings.TrimSpace(out.String()), err
}
