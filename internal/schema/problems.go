package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// MaxProblems is how many problems one error lists.
const MaxProblems = 5

// maxQuoted is the most bytes of a name that a problem quotes.
const maxQuoted = 64

// Problem is one location at which a value does not match its schema.
type Problem struct {
	Path    string // JSON Pointer (RFC 6901) into the value; empty for the whole
	Keyword string // the keyword that failed, such as "required"
	Text    string // the expected value; never quotes the value itself
}

// Problems is the error of a value that does not fit its schema. Its text is
// meant for the author of the value, a model most of the time.
type Problems struct {
	List []Problem // at most MaxProblems, by path
	More int       // how many were left out
}

// Error lists the problems in one line.
func (p *Problems) Error() string {
	parts := make([]string, 0, len(p.List)+1)
	for _, problem := range p.List {
		where := "the value"
		if problem.Path != "" {
			where = quote(problem.Path)
		}
		parts = append(parts, where+" "+problem.Text)
	}
	if p.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", p.More))
	}
	return strings.Join(parts, "; ")
}

// newProblems collects the leaves of the library's tree of causes. doc is the schema, for
// hints; it may be nil.
func newProblems(failed *jsonschema.ValidationError, doc any) *Problems {
	c := collector{doc: doc, found: map[Problem]bool{}, hints: map[string]string{}}
	c.collect(failed)
	list := slices.SortedFunc(maps.Keys(c.found), func(a, b Problem) int {
		return strings.Compare(a.Path+"\x00"+a.Keyword+"\x00"+a.Text, b.Path+"\x00"+b.Keyword+"\x00"+b.Text)
	})
	p := &Problems{List: list}
	if len(list) > MaxProblems {
		p.List, p.More = list[:MaxProblems], len(list)-MaxProblems
	}
	return p
}

// collector collects problems.
type collector struct {
	doc   any // the schema; may be nil
	found map[Problem]bool
	// hints are what the schema says at a location, which many values can violate.
	hints map[string]string
}

func (c collector) collect(failed *jsonschema.ValidationError) {
	for _, cause := range failed.Causes {
		c.collect(cause)
	}
	if len(failed.Causes) > 0 || failed.Message == "" {
		return
	}
	_, pointer, _ := strings.Cut(failed.AbsoluteKeywordLocation, "#")
	tokens := pointerTokens(pointer)
	keyword := ""
	if len(tokens) > 0 {
		keyword = tokens[len(tokens)-1]
	}
	c.found[Problem{
		Path:    unescapePath(failed.InstanceLocation),
		Keyword: keyword,
		Text:    c.sentence(keyword, failed.Message, tokens),
	}] = true
}

// hint returns what read returns for the schema at a location. It reads each location once.
func (c collector) hint(tokens []string, read func(tokens []string, doc any) string) string {
	key := strings.Join(tokens, "\x00")
	text, ok := c.hints[key]
	if !ok {
		text = read(tokens, c.doc)
		c.hints[key] = text
	}
	return text
}

// sentence returns what was expected. The library's messages can quote the value; the
// message is cut before the quote, because values can be secrets.
func (c collector) sentence(keyword, message string, tokens []string) string {
	switch keyword {
	case "type":
		return "must be " + strings.Replace(strings.TrimPrefix(message, "expected "), ", but got ", ", not ", 1)
	case "required":
		return "lacks " + clip(strings.TrimPrefix(message, "missing properties: "))
	case "additionalProperties":
		name := strings.TrimSuffix(strings.TrimPrefix(message, "additionalProperties "), " not allowed")
		return "has unknown members " + clip(name) + c.hint(tokens, known)
	case "enum", "const":
		return c.hint(tokens, choice)
	case "format":
		if _, format, ok := strings.Cut(message, " is not valid "); ok {
			return "is not a valid " + clip(format)
		}
		return "has not the format that is asked for"
	case "multipleOf":
		_, of, _ := strings.Cut(message, "not multipleOf ")
		return "must be a multiple of " + of
	case "pattern":
		return clip(message)
	}
	message, _, _ = strings.Cut(message, " but found ")
	message, _, _ = strings.Cut(message, ", but got ")
	return clip(strings.TrimSuffix(message, ","))
}

// choice names the values that an enum or const allows, as JSON.
func choice(tokens []string, doc any) string {
	const unknown = "is not one of the values that are allowed"
	if doc == nil {
		return unknown
	}
	values := follow(tokens, doc)
	if tokens[len(tokens)-1] == "const" {
		values = []any{values}
	}
	list, ok := values.([]any)
	if !ok || len(list) == 0 {
		return unknown
	}
	parts := make([]string, len(list))
	for i, value := range list {
		text, err := json.Marshal(value)
		if err != nil {
			return unknown
		}
		parts[i] = string(text)
	}
	if len(parts) == 1 {
		return clip("must be " + parts[0])
	}
	return clip("must be one of " + strings.Join(parts, ", "))
}

// follow returns the value at a path in a schema, or nil.
func follow(tokens []string, doc any) any {
	for _, token := range tokens {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

// known names the members that the object may have, so that a misspelt one can be corrected.
func known(tokens []string, doc any) string {
	object, ok := follow(tokens[:max(0, len(tokens)-1)], doc).(map[string]any)
	if !ok {
		return ""
	}
	members, ok := object["properties"].(map[string]any)
	if !ok || len(members) == 0 {
		return ""
	}
	return " (known: " + clip(strings.Join(slices.Sorted(maps.Keys(members)), ", ")) + ")"
}

func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		token = unescapePath(token)
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

// unescapePath takes off the URL escaping that the library puts around pointers.
func unescapePath(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// clip bounds how much untrusted text a message carries.
func clip(s string) string {
	return visible.Line(truncate.Bytes(s, 4*maxQuoted))
}

func quote(s string) string {
	return `"` + strings.ReplaceAll(visible.Text(truncate.Bytes(s, maxQuoted)), `"`, `\"`) + `"`
}
