package codegen

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits that keep the work for one schema small, hostile ones included.
const (
	maxSteps    = 20_000 // subschemas looked at and fields joined
	maxLiterals = 512    // values of one enum that become a type
	maxUnion    = 64     // members of one union
	maxDigits   = 15     // of an integer that becomes a literal type; doubles hold 15
)

// builder converts one JSON Schema (2020-12 or an earlier draft) to a shape. Keywords that
// types cannot express are ignored, so a shape allows at least what the schema allows.
type builder struct {
	root  *value
	steps int // subschemas looked at, fields joined
	// siblings reports whether keywords beside $ref count, as they do since 2019-09.
	siblings bool
	targets  map[*value]*target
	ids      map[string]*value // by $id and anchor, once a reference asked
	uris     map[*value]string // of schemas with $id, likewise
	// problems lists what the types omit, one clause each.
	problems []string
}

// readSchema parses a schema and returns its shape. A schema that cannot be
// used at all is an error; parts that cannot are problems, a clause each.
func readSchema(raw []byte) (s *shape, problems []string, err error) {
	root, err := parseJSON(raw)
	if err != nil {
		return nil, nil, err
	}
	if root.kind != isObject && root.kind != isBool {
		return nil, nil, errors.New("a schema must be an object or a boolean")
	}
	b := builder{root: root, siblings: !oldDraft(root.str("$schema")), targets: map[*value]*target{}}
	s = b.build(root, root)
	if b.steps > maxSteps {
		return nil, nil, fmt.Errorf("reading it takes more than %d steps", maxSteps)
	}
	return s, b.problems, nil
}

// oldDraft reports whether a dialect ignores keywords beside $ref.
func oldDraft(dialect string) bool {
	for _, draft := range []string{"draft-03/", "draft-04/", "draft-06/", "draft-07/"} {
		if strings.Contains(dialect, draft) {
			return true
		}
	}
	return false
}

func (b *builder) problem(text string) {
	if !slices.Contains(b.problems, text) {
		b.problems = append(b.problems, text)
	}
}

// build returns the shape of a schema; base is the schema resource it is part of.
func (b *builder) build(s, base *value) *shape {
	t := b.target(s, base)
	if t.shape == nil {
		// A reference led into the middle of s, and from there up to its parent.
		return &shape{form: reference, target: t}
	}
	return t.shape
}

// target builds a schema, once.
func (b *builder) target(s, base *value) *target {
	t, known := b.targets[s]
	if !known {
		t = &target{}
		b.targets[s] = t
		t.shape = withoutSelf(b.read(s, base), t)
	}
	return t
}

// read returns the shape of one schema from its keywords.
func (b *builder) read(s, base *value) *shape {
	b.steps++
	switch {
	case b.steps > maxSteps:
		return anyShape
	case s.kind == isBool && !s.truth, allowsAll(s.get("not")):
		return neverShape
	case s.kind == isBool:
		return anyShape
	case s.kind != isObject:
		b.problem("a subschema is neither an object nor a boolean")
		return anyShape
	}
	if s.str("$id") != "" && !strings.HasPrefix(s.str("$id"), "#") {
		base = s
	}
	out := anyShape
	if ref := refOf(s); ref != "" {
		out = b.reference(ref, base)
		if !b.siblings {
			return out
		}
	}
	out = b.meet(out, b.own(s, base))
	for _, part := range list(s.get("allOf")) {
		out = b.meet(out, b.build(part, base))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		parts := list(s.get(keyword))
		switch {
		case len(parts) == 0:
		case onlyRequire(parts):
			out = b.demand(out, parts)
		default:
			out = b.meet(out, b.anyOf(parts, base))
		}
	}
	return out
}

// own returns the shape of type, const and enum, and of what belongs to a type.
// Values of another type than the schema names are believed: the list of them
// was written with more care.
func (b *builder) own(s, base *value) *shape {
	values, typed := b.values(s), b.typed(s, base)
	if both := b.meet(values, typed); both.form != nothing {
		return both
	}
	return values
}

// allowsAll reports whether a schema plainly excludes nothing: true or {}.
func allowsAll(s *value) bool {
	return s != nil && (s.kind == isBool && s.truth || s.kind == isObject && len(s.members) == 0)
}

// list returns the items of an array, or nil if v is not an array.
func list(v *value) []*value {
	if v == nil {
		return nil
	}
	return v.items
}

func (b *builder) anyOf(parts []*value, base *value) *shape {
	shapes := make([]*shape, len(parts))
	for i, part := range parts {
		shapes[i] = b.build(part, base)
	}
	return either(shapes...)
}

// values returns the shape of const and enum.
func (b *builder) values(s *value) *shape {
	if constant := s.get("const"); constant != nil {
		return constantShape(constant)
	}
	choices := s.get("enum")
	if choices == nil || choices.kind != isArray {
		return anyShape
	}
	type same struct {
		form  form
		kind  kindOf
		truth bool
		text  string
	}
	seen := make(map[same]bool, len(choices.items))
	wide := len(choices.items) > maxLiterals
	var shapes []*shape
	for _, choice := range choices.items {
		one := constantShape(choice)
		if wide {
			one = kindShape(choice.kind)
		}
		key := same{form: one.form}
		if one.form == literalValue {
			key = same{one.form, choice.kind, choice.truth, choice.text}
		}
		if !seen[key] {
			seen[key] = true
			shapes = append(shapes, one)
		}
	}
	return either(shapes...)
}

// constantShape is the narrowest shape of one value: itself for strings,
// booleans and integers of few digits, its kind for others.
func constantShape(v *value) *shape {
	switch {
	case v.kind == isString, v.kind == isBool:
		return &shape{form: literalValue, value: v}
	case v.kind == isNumber && strings.ContainsAny(v.text, ".eE"):
		return &shape{form: number}
	case v.kind == isNumber && len(v.text) <= maxDigits && v.text != "-0":
		return &shape{form: literalValue, value: v}
	}
	return kindShape(v.kind)
}

// typed returns the shape of type and of the keywords that belong to a type.
func (b *builder) typed(s, base *value) *shape {
	kind := s.get("type")
	switch {
	case kind == nil:
		return b.untyped(s, base)
	case kind.kind == isString:
		return b.ofType(kind.text, s, base)
	}
	var shapes []*shape
	for _, k := range list(kind) {
		shapes = append(shapes, b.ofType(k.text, s, base))
	}
	if len(shapes) == 0 {
		return anyShape
	}
	return either(shapes...)
}

// untyped infers the type that a schema without one is about.
func (b *builder) untyped(s, base *value) *shape {
	for _, m := range s.members {
		switch m.key {
		case "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "required":
			return b.object(s, base)
		case "items", "prefixItems":
			return b.array(s, base)
		}
	}
	return anyShape
}

func (b *builder) ofType(name string, s, base *value) *shape {
	switch name {
	case "null":
		return &shape{form: null}
	case "boolean":
		return &shape{form: boolean}
	case "integer":
		return &shape{form: integer}
	case "number":
		return &shape{form: number}
	case "string":
		return &shape{form: text}
	case "array":
		return b.array(s, base)
	case "object":
		return b.object(s, base)
	case "any": // draft-03; some servers still write it
		return anyShape
	}
	b.problem("it names a type that JSON Schema does not have")
	return anyShape
}

// array reads items and prefixItems; before 2020-12 an array under items was
// the prefix and additionalItems the rest.
func (b *builder) array(s, base *value) *shape {
	prefix, rest := list(s.get("prefixItems")), s.get("items")
	if rest != nil && rest.kind == isArray {
		prefix, rest = rest.items, s.get("additionalItems")
	}
	if len(prefix) == 0 {
		elem := anyShape
		if rest != nil {
			elem = b.build(rest, base)
		}
		return &shape{form: array, elem: elem}
	}
	out := &shape{form: tuple, least: atLeast(s, len(prefix))}
	for _, item := range prefix {
		out.items = append(out.items, b.build(item, base))
	}
	if rest != nil {
		if elem := b.build(rest, base); elem.form != nothing {
			out.elem = elem
		}
	}
	return out
}

// atLeast returns minItems, as far as it concerns the first n items.
func atLeast(s *value, n int) int {
	least := s.get("minItems")
	if least == nil || least.kind != isNumber {
		return 0
	}
	count, err := strconv.ParseFloat(least.text, 64)
	if err != nil || count < 0 {
		return 0
	}
	return int(min(count, float64(n)))
}
