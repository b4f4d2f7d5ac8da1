package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// format is a syntax of configuration files. Its functions do not modify data.
type format struct {
	name string
	// decode returns the file's content; an empty file is an empty mapping.
	decode func(data []byte) (map[string]any, error)
	// edit removes members of the mapping under key and adds others, and changes
	// nothing else. The texts of added are in the format's own syntax.
	edit func(data []byte, key string, remove []string, add map[string]string) ([]byte, error)
	// raw returns the members' own texts, for edit to add them again.
	raw func(data []byte, key string, names []string) (map[string]string, error)
	// encode returns the text of a member.
	encode func(key, name string, value written) (string, error)
}

// byteOrderMark is at the start of files that some editors of Windows write.
const byteOrderMark = "\ufeff"

// textEncoding is how a file encodes its text: with a byte order mark, and with the
// line ends of Windows (CRLF).
type textEncoding struct{ mark, crlf bool }

// decodeText returns the text without a byte order mark and with line feeds as its line
// ends, and how it was encoded. A file with both kinds of line ends keeps them.
func decodeText(data []byte) ([]byte, textEncoding) {
	plain, marked := bytes.CutPrefix(data, []byte(byteOrderMark))
	lines := bytes.Count(plain, []byte("\n"))
	e := textEncoding{marked, lines > 0 && lines == bytes.Count(plain, []byte("\r\n"))}
	if e.crlf {
		plain = bytes.ReplaceAll(plain, []byte("\r\n"), []byte("\n"))
	}
	return plain, e
}

// encode is the inverse of decodeText.
func (e textEncoding) encode(plain []byte) []byte {
	if e.crlf {
		plain = bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n"))
	}
	if e.mark {
		plain = append([]byte(byteOrderMark), plain...)
	}
	return plain
}

// texts returns the members' own texts with plain line ends, for checkedEdit to add
// them again.
func (f format) texts(data []byte, key string, names []string) (map[string]string, error) {
	plain, _ := decodeText(data)
	return f.raw(plain, key, names)
}

// servers returns the entries under key, as decoded.
func (f format) servers(data []byte, key string) (map[string]fields, error) {
	data, _ = decodeText(data)
	content, err := f.decode(data)
	if err != nil {
		return nil, err
	}
	parent, last := nested(content, key)
	if parent[last] == nil {
		return nil, nil
	}
	members, ok := parent[last].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping of names to servers", key)
	}
	servers := map[string]fields{}
	for name, member := range members {
		if entry, ok := member.(map[string]any); ok {
			servers[name] = entry
		}
	}
	return servers, nil
}

// checkedEdit is edit with a check: everything else in the file must decode to the same values as
// before.
func (f format) checkedEdit(data []byte, key string, remove []string, add map[string]string) ([]byte, error) {
	plain, encoding := decodeText(data)
	edited, err := f.checkedPlainEdit(plain, key, remove, add)
	return encoding.encode(edited), err
}

func (f format) checkedPlainEdit(data []byte, key string, remove []string, add map[string]string) ([]byte, error) {
	edited, err := f.edit(data, key, remove, add)
	if err != nil {
		return nil, err
	}
	before, err := f.decode(data)
	if err != nil {
		return nil, err
	}
	after, err := f.decode(edited)
	if err != nil {
		return nil, fmt.Errorf("the edited %s would not be readable: %w", f.name, err)
	}
	was, last := nested(before, key)
	is, _ := nested(after, key)
	members := func(parent map[string]any) map[string]any {
		m, _ := parent[last].(map[string]any)
		m = maps.Clone(m)
		for _, name := range remove {
			delete(m, name)
		}
		for name := range add {
			delete(m, name)
		}
		return m
	}
	kept, stayed := members(was), members(is)
	afterMembers, _ := is[last].(map[string]any)
	for name := range add {
		if afterMembers[name] == nil {
			return nil, fmt.Errorf("the entry %q could not be added to %s", name, key)
		}
	}
	for _, name := range remove {
		if _, added := add[name]; !added && afterMembers[name] != nil {
			return nil, fmt.Errorf("the entry %q could not be removed from %s", name, key)
		}
	}
	delete(was, last)
	delete(is, last)
	if len(kept) != len(stayed) || len(kept) > 0 && !reflect.DeepEqual(kept, stayed) ||
		!reflect.DeepEqual(before, after) {
		return nil, fmt.Errorf("%s is written in a form that cannot be edited without changing other keys", key)
	}
	return edited, nil
}

// nested returns the mapping that has the last part of a key such as "mcp.servers", and this part.
func nested(content map[string]any, key string) (parent map[string]any, last string) {
	if first, rest, ok := strings.Cut(key, "."); ok {
		inner, _ := content[first].(map[string]any)
		return nested(inner, rest)
	}
	return content, key
}

// decodeJSON reads standard JSON and keeps numbers as they are written.
func decodeJSON(data []byte) (map[string]any, error) {
	value, err := strictjson.Value(data)
	if err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	return content, nil
}

// sortedKeys returns the keys of a mapping in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
