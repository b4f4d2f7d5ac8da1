// Package schema checks JSON values against the JSON Schemas that upstream servers publish.
// A schema is untrusted: it cannot load other documents, and the cost of compiling it and
// checking a value is bounded.
//
// The default draft is 2020-12, as in MCP 2025-11-25; drafts 4, 6, 7 and 2019-09 are used
// if declared by $schema. `format` is checked in drafts up to 7 and is an annotation from
// 2019-09 on, as those drafts define.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of one schema.
const (
	MaxSchemaBytes = 512 << 10
	maxSchemaNodes = 10_000    // values in the schema's text
	maxRefWork     = 1_000_000 // distinct references × values: what resolving them may cost
)

// location is the base URI of every schema. Nothing is read from it.
const location = "airlock://tool/schema.json"

// dialect is that of a schema which names none (MCP 2025-11-25, JSON Schema usage).
const dialect = "https://json-schema.org/draft/2020-12/schema"

// Schema is a compiled JSON Schema. It may be used concurrently.
type Schema struct {
	doc       any // the schema as decoded, for hints in problems
	unchecked []string

	mu       sync.Mutex // guards compiled and budget: the counter is per check
	compiled *jsonschema.Schema
	budget   *budget
}

// Compile parses and compiles one schema. The error describes the problem in one sentence
// and quotes at most a short name from the schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > MaxSchemaBytes {
		return nil, fmt.Errorf("the schema has %d bytes, more than %d", len(raw), MaxSchemaBytes)
	}
	doc, err := strictjson.Value(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if err := measure(doc); err != nil {
		return nil, err
	}
	relaxed, unchecked := relax(doc)
	if object, ok := relaxed.(map[string]any); ok && object["$schema"] == nil {
		// Not only c.Draft: without the word itself the library also asserts formats.
		object["$schema"] = dialect
	}
	text, err := json.Marshal(relaxed)
	if err != nil {
		return nil, fmt.Errorf("rewriting the schema: %w", err)
	}
	s := &Schema{doc: doc, unchecked: unchecked, budget: &budget{}}
	if s.compiled, err = compile(text, s.budget); err != nil {
		return nil, err
	}
	return s, nil
}

// Unchecked lists the patterns that RE2 cannot run (look-around,
// back-references). Values are checked as if those patterns were not there;
// the upstream server, which wrote them, still checks them itself.
func (s *Schema) Unchecked() []string { return s.unchecked }

// Misspelt returns the names of members that the schema does not know, each with the name that was
// probably meant, such as max_count for maxCount. Both differ only in capitals and separators, no
// other known name fits, and the object has no member with it. The result is nil if the schema
// allows unknown members.
func (s *Schema) Misspelt(object map[string]any) map[string]string {
	doc, _ := s.doc.(map[string]any)
	known, _ := doc["properties"].(map[string]any)
	if others, ok := doc["additionalProperties"]; ok && others != false || doc["patternProperties"] != nil {
		return nil
	}
	var meant map[string]string
	for name := range object {
		if _, ok := known[name]; ok {
			continue
		}
		var alike []string
		for other := range known {
			if _, given := object[other]; !given && plain(other) == plain(name) {
				alike = append(alike, other)
			}
		}
		if len(alike) != 1 {
			continue
		}
		for _, other := range meant {
			if other == alike[0] {
				return nil // it is given twice
			}
		}
		if meant == nil {
			meant = map[string]string{}
		}
		meant[name] = alike[0]
	}
	return meant
}

// plain returns a name without capitals and separators.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// Validate decodes raw and checks it. The error is a *Problems when the value
// does not fit the schema, and another error when it cannot be read or checked.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := strictjson.Value(raw)
	if err != nil {
		return err
	}
	return s.Check(v)
}

// Check is Validate for a value that Decode returned.
func (s *Schema) Check(v any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		// The checker panics on what its authors thought impossible; an untrusted
		// schema and value must not be able to end the program.
		if r := recover(); r != nil {
			err = fmt.Errorf("the value cannot be checked against its schema: %s", reason(r))
		}
	}()
	s.budget.start(v)
	err = s.compiled.Validate(v)
	if failed, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return newProblems(failed, s.doc)
	}
	if err != nil {
		return errors.New("the value cannot be checked: its schema refers to itself without end")
	}
	return nil
}

func compile(text []byte, b *budget) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			compiled, err = nil, errors.New("the schema cannot be compiled")
		}
	}()
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errOutside }
	c.RegisterExtension("airlock-budget", nil, b)
	if err := c.AddResource(location, bytes.NewReader(text)); err != nil {
		return nil, errors.New("the schema cannot be read")
	}
	compiled, err = c.Compile(location)
	if err != nil {
		return nil, schemaError(err)
	}
	return compiled, nil
}

// errOutside refuses every reference that leaves the schema: the library's own
// loader would open file:// addresses of the host.
var errOutside = errors.New("the schema refers to a document outside of itself")

// schemaError rewords the library's error, which quotes the schema.
func schemaError(err error) error {
	var invalid *jsonschema.ValidationError
	var loop jsonschema.InfiniteLoopError
	switch {
	case errors.Is(err, errOutside):
		return errOutside
	case errors.As(err, &invalid):
		return fmt.Errorf("the schema is not a valid JSON Schema: %w", newProblems(invalid, nil))
	case errors.As(err, &loop):
		return errors.New("the schema refers to itself without end")
	default:
		return errors.New("the schema has a reference that leads nowhere, or a dialect that is not supported")
	}
}

// measure bounds the cost of compiling: the compiler's work grows with the
// product of references and values.
func measure(doc any) error {
	nodes, refs := 0, map[string]bool{}
	walk(doc, func(v any) {
		nodes++
		if object, ok := v.(map[string]any); ok {
			for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
				if target, ok := object[keyword].(string); ok {
					refs[target] = true
				}
			}
		}
	})
	if nodes > maxSchemaNodes {
		return fmt.Errorf("the schema has %d values, more than %d", nodes, maxSchemaNodes)
	}
	if len(refs)*nodes > maxRefWork {
		return fmt.Errorf("the schema has %d different references among %d values, which is too much to resolve",
			len(refs), nodes)
	}
	return nil
}

// walk visits v and every value in it.
func walk(v any, visit func(any)) {
	visit(v)
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			walk(member, visit)
		}
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	}
}

func reason(recovered any) string {
	if err, ok := recovered.(errTooMuchWork); ok {
		return err.Error()
	}
	return "the checker gave up"
}
