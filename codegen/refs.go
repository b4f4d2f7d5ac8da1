package codegen

import (
	"net/url"
	"strconv"
	"strings"
)

// refOf returns what a schema refers to, or "".
func refOf(s *value) string {
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref := s.str(keyword); ref != "" {
			return ref
		}
	}
	return ""
}

// reference returns the shape of a $ref (JSON Schema 2020-12 Core, section 8.2.3).
// What lies outside the schema is never fetched: it may be anything.
func (b *builder) reference(ref string, base *value) *shape {
	s, base := b.find(ref, base)
	if s == nil {
		b.problem("a $ref leads nowhere inside the schema")
		return anyShape
	}
	t := b.target(s, base)
	if t.hint == "" {
		t.hint = hintOf(ref)
	}
	return &shape{form: reference, target: t}
}

// withoutSelf removes a target from the alternatives of its own shape: X is
// "string or X" says no more than "string".
func withoutSelf(s *shape, self *target) *shape {
	if s.form == reference && s.target == self {
		return anyShape
	}
	if s.form != union {
		return s
	}
	var items []*shape
	for _, item := range s.items {
		if item.form != reference || item.target != self {
			items = append(items, item)
		}
	}
	return either(items...)
}

// find returns the schema a reference means and the resource that it is in.
func (b *builder) find(ref string, base *value) (s, resource *value) {
	uri, fragment, _ := strings.Cut(ref, "#")
	resource = base
	if uri != "" {
		if resource = b.byID(uri, base); resource == nil {
			return nil, nil
		}
	}
	if fragment == "" {
		return resource, resource
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	if !strings.HasPrefix(fragment, "/") {
		return b.byID("#"+fragment, base), resource
	}
	s = pointer(resource, fragment)
	if s == nil || s.kind != isObject && s.kind != isBool {
		return nil, nil
	}
	return s, resource
}

// pointer evaluates a JSON Pointer (RFC 6901).
func pointer(v *value, path string) *value {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(path, "/")[1:] {
		switch {
		case v == nil:
			return nil
		case v.kind == isArray:
			at, err := strconv.Atoi(token)
			if err != nil || at < 0 || at >= len(v.items) {
				return nil
			}
			v = v.items[at]
		default:
			v = v.get(unescape.Replace(token))
		}
	}
	return v
}

// byID finds a schema by its $id, relative to its base or not, or by "#" and
// its anchor.
func (b *builder) byID(id string, base *value) *value {
	if b.ids == nil {
		b.ids = map[string]*value{}
		b.index(b.root)
	}
	if s := b.ids[id]; s != nil {
		return s
	}
	from, err := url.Parse(base.str("$id"))
	if err != nil {
		return nil
	}
	to, err := from.Parse(id)
	if err != nil {
		return nil
	}
	return b.ids[to.String()]
}

func (b *builder) index(v *value) {
	for _, keyword := range []string{"$id", "id"} {
		if id := strings.TrimSuffix(v.str(keyword), "#"); id != "" && b.ids[id] == nil {
			b.ids[id] = v
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name := v.str(keyword); name != "" && b.ids["#"+name] == nil {
			b.ids["#"+name] = v
		}
	}
	for _, item := range v.items {
		b.index(item)
	}
	for _, m := range v.members {
		b.index(m.value)
	}
}

// hintOf returns the last telling part of a reference, for a type's name.
func hintOf(ref string) string {
	parts := strings.FieldsFunc(ref, func(r rune) bool { return r == '/' || r == '#' || r == ':' })
	for i := len(parts) - 1; i >= 0; i-- {
		switch parts[i] {
		case "items", "properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$defs", "definitions":
		default:
			if _, err := strconv.Atoi(parts[i]); err != nil {
				return parts[i]
			}
		}
	}
	return "node"
}
