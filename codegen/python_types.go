package codegen

import (
	"slices"
	"strings"
)

// pythonTypes writes the types of one schema for Python 3.11 or later: a TypedDict (PEP
// 589, PEP 655) for each record, in the functional form if a key is not an identifier.
type pythonTypes struct {
	*declarations
	out   []byte
	done  map[*declaration]bool // declarations already written, which need no quotes
	given bool                  // types of arguments; else of results
	uses  map[string]bool       // names wanted from typing
	steps int                   // shapes written
}

// pythonReservedKeys are keys that would hide, in the body of a class, a name
// its annotations use.
var pythonReservedKeys = []string{
	"Annotated", "Any", "Literal", "Never", "NotRequired", "Required", "ToolResult", "TypeAlias",
	"TypedDict", "Union", "bool", "dict", "float", "int", "list", "str", "tuple",
}

// write appends all declarations. It returns false when they are too long.
func (p *pythonTypes) write() bool {
	for _, d := range p.built {
		if d.shape.form == record {
			p.record(d)
		} else {
			p.out = append(p.out, d.name+": "+p.use("TypeAlias")+" = "+p.expression(d.shape, true)+"\n\n\n"...)
		}
		p.done[d] = true
		if len(p.out) > maxSignature || p.steps > maxSignature {
			return false
		}
	}
	return true
}

func (p *pythonTypes) use(name string) string {
	p.uses[name] = true
	return name
}

func (p *pythonTypes) record(d *declaration) {
	if !slices.ContainsFunc(d.shape.fields, p.needsFunctionalForm) {
		p.class(d)
		return
	}
	p.out = append(p.out, d.name+" = "+p.use("TypedDict")+`("`+d.name+`", {`+"\n"...)
	for _, f := range d.shape.fields {
		if f.key == "" {
			continue
		}
		kind := p.expression(f.shape, false)
		if prose := fieldProse(f, p.detail.prose); prose != "" {
			kind = p.use("Annotated") + "[" + kind + ", " + pythonLiteral(prose) + "]"
		}
		p.out = append(p.out, "    "+pythonLiteral(f.key)+": "+p.presence(f, kind)+",\n"...)
	}
	p.out = append(p.out, "})\n"...)
	if prose := p.recordProse(d); prose != "" {
		p.out = docstring(p.out, "", prose)
	}
	p.out = append(p.out, "\n\n"...)
}

// needsFunctionalForm reports whether a key cannot be an annotated name in a class: it is
// not an identifier, Python would mangle it, or it would hide a type.
func (p *pythonTypes) needsFunctionalForm(f field) bool {
	if !isIdentifier(f.key, pythonReserved) || strings.HasPrefix(f.key, "__") || strings.HasPrefix(f.key, p.prefix) {
		return true
	}
	_, hides := slices.BinarySearch(pythonReservedKeys, f.key)
	return hides
}

func (p *pythonTypes) class(d *declaration) {
	p.out = append(p.out, "class "+d.name+"("+p.use("TypedDict")+"):\n"...)
	prose := p.recordProse(d)
	if prose != "" {
		p.out = docstring(p.out, "    ", prose)
	}
	for _, f := range d.shape.fields {
		p.out = append(p.out, "    "+f.key+": "+p.presence(f, p.expression(f.shape, false))+"\n"...)
		if prose := fieldProse(f, p.detail.prose); prose != "" {
			p.out = docstring(p.out, "    ", prose)
		}
	}
	if len(d.shape.fields) == 0 && prose == "" {
		p.out = append(p.out, "    pass\n"...)
	}
	p.out = append(p.out, "\n\n"...)
}

// recordProse returns a record's docstring, which may be empty.
func (p *pythonTypes) recordProse(d *declaration) string {
	prose := recordProse(d, p.detail.prose)
	if isOpen(d.shape) {
		prose = strings.TrimPrefix(prose+" Other keys are allowed.", " ")
	}
	return prose
}

// isOpen reports whether a record takes keys that its TypedDict cannot list:
// any others, or the empty one, which type checkers refuse.
func isOpen(s *shape) bool {
	return s.others == open || slices.ContainsFunc(s.fields, func(f field) bool { return f.key == "" })
}

// presence marks kind as required or optional.
func (p *pythonTypes) presence(f field, kind string) string {
	if f.required {
		return p.use("Required") + "[" + kind + "]"
	}
	return p.use("NotRequired") + "[" + kind + "]"
}

// expression writes a shape: in full at the top of a declaration, and by its name
// elsewhere. It stops as soon as the text is too long, because a small shape can have a
// huge type.
func (p *pythonTypes) expression(s *shape, top bool) string {
	s = s.follow()
	if p.steps++; p.steps <= maxSignature {
		if d := p.named[s]; d != nil && !top && !p.cut(s) {
			return p.name(d)
		}
		if written := p.spell(s); len(written) <= maxSignature {
			return written
		}
		p.steps = maxSignature + 1
	}
	return p.use("Any")
}

// spell writes a shape in full.
func (p *pythonTypes) spell(s *shape) string {
	switch s.form {
	case nothing:
		return p.use("Never")
	case null:
		return "None"
	case boolean:
		return "bool"
	case integer:
		return "int"
	case number:
		return "float"
	case text:
		return "str"
	case literalValue:
		return p.literals([]*shape{s})
	case array:
		return "list[" + p.expression(s.elem, false) + "]"
	case table, record:
		elem := anyShape
		if s.form == table {
			elem = s.elem
		}
		return "dict[str, " + p.expression(elem, false) + "]"
	case tuple:
		return p.tuple(s)
	case union:
		return p.union(s)
	}
	return p.use("Any")
}

// name writes the name of a declaration, in quotes while it does not stand
// above. Arguments may have more keys than an open record lists.
func (p *pythonTypes) name(d *declaration) string {
	name := d.name
	if !p.done[d] {
		name = `"` + name + `"`
	}
	if d.shape.form != record || !isOpen(d.shape) || !p.given {
		return name
	}
	return p.join([]string{name, "dict[str, " + p.use("Any") + "]"})
}

// join writes a union of types. A quoted name has no operator |.
func (p *pythonTypes) join(types []string) string {
	if len(types) == 1 {
		return types[0]
	}
	if slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, `"`) }) {
		return p.use("Union") + "[" + strings.Join(types, ", ") + "]"
	}
	return strings.Join(types, " | ")
}

func (p *pythonTypes) union(s *shape) string {
	literals, others, nullable := p.alternatives(s)
	var types []string
	add := func(kind string) {
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	if len(literals) > 0 {
		add(p.literals(literals))
	}
	for _, other := range others {
		add(p.expression(other, false))
	}
	if nullable {
		add("None")
	}
	if len(types) == 0 {
		return p.use("Any")
	}
	return p.join(types)
}

// literals writes a Literal (PEP 586) of strings, booleans and integers.
func (p *pythonTypes) literals(shapes []*shape) string {
	b := []byte(p.use("Literal") + "[")
	for i, s := range shapes {
		if i > 0 {
			b = append(b, ", "...)
		}
		switch v := s.value; {
		case v.kind == isString:
			b = literal(b, v.text, pythonAstral)
		case v.kind == isNumber:
			b = append(b, v.text...)
		case v.truth:
			b = append(b, "True"...)
		default:
			b = append(b, "False"...)
		}
	}
	return string(append(b, ']'))
}

// tuple writes a JSON array with fixed positions. Code can pass a tuple or a list; results
// are always lists.
func (p *pythonTypes) tuple(s *shape) string {
	places := make([]string, 0, len(s.items)+1)
	for _, item := range s.items {
		places = append(places, p.expression(item, false))
	}
	any := slices.Clone(places)
	if s.elem != nil {
		elem := p.expression(s.elem, false)
		any = append(any, elem)
		places = append(places, "*tuple["+elem+", ...]")
	}
	slices.Sort(any)
	list := "list[" + p.join(slices.Compact(any)) + "]"
	if !p.given {
		return list
	}
	return "tuple[" + strings.Join(places, ", ") + "] | " + list
}
