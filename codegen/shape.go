package codegen

import "slices"

// form is the kind of values that a shape allows. The zero value allows everything, so
// that a schema that is not understood promises nothing.
type form uint8

const (
	anything form = iota
	nothing
	null
	boolean
	integer
	number
	text
	literalValue // one string, boolean or integer
	array        // elem
	tuple        // items, then elem if it is not nil
	table        // an object with values of elem and keys not known beforehand
	record       // an object with fields
	union        // items
	reference    // target, to be looked up: schemas may be recursive
)

// shape is a type independent of the language: it allows at least the values that a JSON
// Schema allows. Shapes form a tree except for references.
type shape struct {
	form   form
	value  *value   // literalValue
	elem   *shape   // array, table; tuple: elements after items
	items  []*shape // tuple, union
	least  int      // tuple: how many items must be present
	fields []field  // record
	others openness // record
	target *target  // reference
	about  *value   // record: the schema it came from, for its description
	demand string   // record: a combination of fields of which it requires some
}

// openness describes whether a record can have additional keys.
type openness uint8

const (
	unsaid openness = iota // not specified: allowed by JSON Schema, but not expected by readers
	closed
	open
)

// field is one key of a record.
type field struct {
	key      string
	shape    *shape
	required bool
	schema   *value // for the description and facts; may be nil
}

// target is a schema that is referred to by name.
type target struct {
	shape *shape // nil while it is being built
	hint  string // the last part of the reference
}

var (
	anyShape   = &shape{form: anything}
	neverShape = &shape{form: nothing}
)

// follow returns the shape behind references, or anything for a circle of
// references that never arrives.
func (s *shape) follow() *shape {
	for range 100 {
		if s.form != reference {
			return s
		}
		if s.target.shape == nil {
			break
		}
		s = s.target.shape
	}
	return anyShape
}

// same reports whether two shapes are plainly equal. It does not follow
// references and does not look deep: parts may be shared, and looking at all
// ways to them would have no end.
func same(a, b *shape) bool { return equal(a, b, 3) }

func equal(a, b *shape, depth int) bool {
	if a == b {
		return true
	}
	if depth == 0 || a == nil || b == nil || a.form != b.form || a.least != b.least ||
		a.others != b.others || a.demand != b.demand || a.target != b.target {
		return false
	}
	if a.form == literalValue {
		return a.value.kind == b.value.kind && a.value.text == b.value.text && a.value.truth == b.value.truth
	}
	below := func(a, b *shape) bool { return equal(a, b, depth-1) }
	return below(a.elem, b.elem) && slices.EqualFunc(a.items, b.items, below) &&
		slices.EqualFunc(a.fields, b.fields, func(f, g field) bool {
			return f.key == g.key && f.required == g.required && below(f.shape, g.shape)
		})
}

// either returns the union of shapes: flat, without duplicates and without members that
// another member includes. A union of too many members allows anything.
func either(shapes ...*shape) *shape {
	var items []*shape
	for _, s := range shapes {
		members := []*shape{s}
		if s.form == union {
			members = s.items
		}
		for _, member := range members {
			items = join(items, member)
		}
		if len(items) > maxLiterals {
			return anyShape
		}
	}
	switch {
	case len(items) == 0:
		return neverShape
	case len(items) == 1:
		return items[0]
	case len(items) > maxUnion && slices.ContainsFunc(items, notLiteral):
		return anyShape
	}
	return &shape{form: union, items: items}
}

// join adds a shape to the members of a union.
func join(items []*shape, s *shape) []*shape {
	if s.form == nothing || slices.ContainsFunc(items, func(have *shape) bool { return covers(have, s) }) {
		return items
	}
	items = slices.DeleteFunc(items, func(have *shape) bool { return covers(s, have) })
	return append(items, s)
}

func notLiteral(s *shape) bool { return s.form != literalValue }

// covers reports whether every value of b is one of a, as far as that is plain.
func covers(a, b *shape) bool {
	switch {
	case a.form == anything, same(a, b):
		return true
	case b.form == integer:
		return a.form == number
	case b.form == literalValue:
		return a.form == kindShape(b.value.kind).form || a.form == number && b.value.kind == isNumber
	}
	return false
}

// kindShape is the shape of all values of a kind.
func kindShape(kind kindOf) *shape {
	return &shape{form: [...]form{isNull: null, isBool: boolean, isNumber: integer, isString: text, isArray: array,
		isObject: table}[kind], elem: anyShape}
}
