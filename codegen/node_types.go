package codegen

import (
	"slices"
	"strings"
)

// nodeTypes writes the types of one schema as TypeScript declarations: an
// interface for each record, a type alias for what else has a name.
type nodeTypes struct {
	*declarations
	out   []byte
	steps int // shapes written
}

// write appends all declarations, the root first. It returns false when they
// are too long.
func (n *nodeTypes) write() bool {
	for _, d := range n.list {
		if d.shape.form == record {
			n.record(d)
		} else {
			n.out = append(n.out, "export type "+d.name+" = "+n.expression(d.shape, true)+";\n\n"...)
		}
		if len(n.out) > maxSignature || n.steps > maxSignature {
			return false
		}
	}
	return true
}

func (n *nodeTypes) record(d *declaration) {
	if prose := recordProse(d, n.detail.prose); prose != "" {
		n.out = jsDoc(n.out, "", prose)
	}
	n.out = append(n.out, "export interface "+d.name+" {\n"...)
	for _, f := range d.shape.fields {
		if prose := fieldProse(f, n.detail.prose); prose != "" {
			n.out = jsDoc(n.out, "  ", prose)
		}
		key, mark := f.key, "?: "
		if !isIdentifier(key, nil) {
			key = nodeLiteral(key)
		}
		if f.required {
			mark = ": "
		}
		n.out = append(n.out, "  "+key+mark+n.expression(f.shape, false)+";\n"...)
	}
	if d.shape.others == open {
		n.out = append(n.out, "  [key: string]: unknown;\n"...)
	}
	n.out = append(n.out, "}\n\n"...)
}

// expression writes a shape: in full at the top of a declaration, and by its name
// elsewhere. It stops as soon as the text is too long, because a small shape can have a
// huge type.
func (n *nodeTypes) expression(s *shape, top bool) string {
	s = s.follow()
	if n.steps++; n.steps <= maxSignature {
		if d := n.named[s]; d != nil && !top && !n.cut(s) {
			return d.name
		}
		if written := n.spell(s); len(written) <= maxSignature {
			return written
		}
		n.steps = maxSignature + 1
	}
	return "unknown"
}

// spell writes a shape in full.
func (n *nodeTypes) spell(s *shape) string {
	switch s.form {
	case nothing:
		return "never"
	case null:
		return "null"
	case boolean:
		return "boolean"
	case integer, number:
		return "number"
	case text:
		return "string"
	case literalValue:
		return nodeValue(s.value)
	case array:
		return n.element(s.elem) + "[]"
	case record:
		return "{ [key: string]: unknown }"
	case table:
		return "{ [key: string]: " + n.expression(s.elem, false) + " }"
	case tuple:
		return n.tuple(s)
	case union:
		return n.union(s)
	}
	return "unknown"
}

// element writes a shape where only a type without operators may stand.
func (n *nodeTypes) element(s *shape) string {
	written := n.expression(s, false)
	if strings.Contains(written, " | ") {
		return "(" + written + ")"
	}
	return written
}

func (n *nodeTypes) union(s *shape) string {
	literals, others, nullable := n.alternatives(s)
	var types []string
	add := func(kind string) {
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	for _, l := range literals {
		types = append(types, nodeValue(l.value))
	}
	for _, other := range others {
		add(n.expression(other, false))
	}
	if nullable {
		add("null")
	}
	if len(types) == 0 {
		return "unknown"
	}
	return strings.Join(types, " | ")
}

// nodeValue writes the type of one string, boolean or integer.
func nodeValue(v *value) string {
	switch {
	case v.kind == isString:
		return nodeLiteral(v.text)
	case v.kind == isNumber:
		return v.text
	case v.truth:
		return "true"
	}
	return "false"
}

// tuple writes an array of fixed places, of which some may be left out at the end.
func (n *nodeTypes) tuple(s *shape) string {
	places := make([]string, 0, len(s.items)+1)
	for i, item := range s.items {
		if i < s.least {
			places = append(places, n.expression(item, false))
		} else {
			places = append(places, n.element(item)+"?")
		}
	}
	if s.elem != nil {
		places = append(places, "..."+n.element(s.elem)+"[]")
	}
	return "[" + strings.Join(places, ", ") + "]"
}
