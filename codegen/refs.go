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
// References to other documents are never fetched: they may be anything.
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

// withoutSelf removes a target from its alternatives: "X is string or X"
// means "X is string".
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
		if resource = b.identified(resolveURI(b.uri(base), uri)); resource == nil {
			return nil, nil
		}
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	switch {
	case fragment == "":
		return resource, resource
	case strings.HasPrefix(fragment, "/"):
		s = pointer(resource, fragment)
	default:
		s = b.identified(b.uri(resource) + "#" + fragment)
	}
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

// identified finds a schema by its absolute URI, with "#" and its anchor if it
// is one.
func (b *builder) identified(uri string) *value {
	b.index()
	return b.ids[uri]
}

// uri returns the absolute URI of a schema resource, empty for a root without $id.
func (b *builder) uri(resource *value) string {
	b.index()
	return b.uris[resource]
}

// index finds all identifiers and anchors, the first time that one is asked for.
func (b *builder) index() {
	if b.ids != nil {
		return
	}
	b.ids, b.uris = map[string]*value{"": b.root}, map[*value]string{}
	b.indexBelow(b.root, "")
}

func (b *builder) indexBelow(v *value, base string) {
	if id := strings.TrimSuffix(v.str("$id"), "#"); id != "" && !strings.HasPrefix(id, "#") {
		base = resolveURI(base, id)
		if b.ids[base] == nil {
			b.ids[base], b.uris[v] = v, base
		}
	}
	// Draft-07 wrote an anchor as an $id that is a fragment.
	for _, anchor := range []string{v.str("$anchor"), v.str("$dynamicAnchor"), strings.TrimPrefix(v.str("$id"), "#")} {
		if name := base + "#" + anchor; anchor != "" && b.ids[name] == nil {
			b.ids[name] = v
		}
	}
	for _, item := range v.items {
		b.indexBelow(item, base)
	}
	for _, m := range v.members {
		b.indexBelow(m.value, base)
	}
}

// resolveURI resolves a reference against a base (RFC 3986, section 5.2).
func resolveURI(base, ref string) string {
	from, err := url.Parse(base)
	if err != nil {
		return ref
	}
	to, err := from.Parse(ref)
	if err != nil {
		return ref
	}
	return to.String()
}

// hintOf returns the last telling part of a reference, for a type's name.
func hintOf(ref string) string {
	if decoded, err := url.PathUnescape(ref); err == nil {
		ref = decoded
	}
	ref = strings.NewReplacer("~1", "_", "~0", "_").Replace(ref)
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
