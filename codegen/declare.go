package codegen

import (
	"strconv"
	"strings"
)

// declaration is one named type: a record, or another name for its shape.
type declaration struct {
	name      string
	shape     *shape
	described bool // whether the schema's own description belongs here: nothing else shows it
}

// declarations are the named types of one schema. Every record has a name,
// because Python needs one, and so has everything that is referred to.
type declarations struct {
	prefix string         // the name of the root, and what all names begin with
	list   []*declaration // as a reader meets them, the root first
	built  []*declaration // each after its dependencies, except in cycles
	detail detail
	named  map[*shape]*declaration
	depths map[*shape]int
	seen   map[*shape]bool
	// spelled are unions that were found in other unions.
	spelled map[*shape]bool
	taken   map[string]int
}

// declare names root prefix, and all composite shapes below it.
func declare(root *shape, prefix string, d detail) *declarations {
	ds := &declarations{
		prefix: prefix, detail: d,
		named: map[*shape]*declaration{}, seen: map[*shape]bool{}, spelled: map[*shape]bool{},
		taken: map[string]int{prefix: 1},
	}
	if d.depth > 0 {
		ds.depths = measure(root, d.depth)
	}
	top := root.follow()
	main := &declaration{name: prefix, shape: top, described: true}
	if isComposite(top) {
		ds.named[top] = main
	}
	ds.seen[top] = true
	ds.list = append(ds.list, main)
	ds.below(top, "")
	ds.built = append(ds.built, main)
	return ds
}

// isComposite reports whether a shape can have a separate declaration. All others are
// short, and some of them are shared.
func isComposite(s *shape) bool {
	switch s.form {
	case record, union, array, tuple, table:
		return true
	}
	return false
}

// visit declares what needs a name in s. hint is the key or reference that led here.
func (ds *declarations) visit(s *shape, hint string, referred bool) {
	if s.form == reference {
		if s.target.hint != "" {
			hint = s.target.hint
		}
		ds.visit(s.follow(), hint, true)
		return
	}
	if ds.cut(s) || !isComposite(s) || ds.seen[s] {
		return
	}
	ds.seen[s] = true
	if s.form != record && !referred {
		ds.below(s, hint)
		return
	}
	d := &declaration{name: ds.name(hint), shape: s, described: referred}
	ds.named[s] = d
	ds.list = append(ds.list, d)
	ds.below(s, hint)
	ds.built = append(ds.built, d)
}

// below visits the parts of a shape.
func (ds *declarations) below(s *shape, hint string) {
	if s.elem != nil {
		ds.visit(s.elem, hint, false)
	}
	for _, item := range s.items {
		behind := item.follow()
		switch {
		case s.form != union || behind.form != union:
			ds.visit(item, hint, false)
		case !ds.spelled[behind]:
			// A union in a union is spelled out and needs no name for that.
			ds.spelled[behind] = true
			ds.below(behind, hint)
		}
	}
	for _, f := range s.fields {
		ds.visit(f.shape, f.key, false)
	}
}

// name returns a new name: the prefix and the hint in camel case, with a number if that
// name is taken.
func (ds *declarations) name(hint string) string {
	var letters strings.Builder
	for i := 0; i < len(hint) && letters.Len() < 40; i++ {
		if c := hint[i]; isASCIILetterOrDigit(rune(c)) {
			letters.WriteByte(c)
		} else if letters.Len() > 0 {
			letters.WriteByte('_')
		}
	}
	suffix := pascal(words(letters.String()))
	if suffix == "" {
		suffix = "Item"
	}
	name := ds.prefix + suffix
	if ds.taken[name]++; ds.taken[name] > 1 {
		return name + "_" + strconv.Itoa(ds.taken[name]) // suffixes do not contain underscores
	}
	return name
}

// cut reports whether a record lies too deep to be written at this detail.
func (ds *declarations) cut(s *shape) bool {
	if ds.detail.depth == 0 || s.form != record {
		return false
	}
	_, near := ds.depths[s]
	return !near
}

// measure finds the records that are reached through fewer than limit others.
func measure(root *shape, limit int) map[*shape]int {
	depths, seen := map[*shape]int{}, map[*shape]bool{}
	level := []*shape{root}
	for depth := 0; depth < limit && len(level) > 0; depth++ {
		var next []*shape
		for len(level) > 0 {
			s := level[len(level)-1].follow()
			level = level[:len(level)-1]
			if seen[s] || !isComposite(s) {
				continue
			}
			seen[s] = true
			level = append(level, s.items...)
			if s.elem != nil {
				level = append(level, s.elem)
			}
			if s.form == record {
				depths[s] = depth
			}
			for _, f := range s.fields {
				next = append(next, f.shape)
			}
		}
		level = next
	}
	return depths
}

// alternatives returns the members of a union as they are written: literals
// together, null last, and references to other unions replaced by what they
// allow, so that no type is defined by itself alone.
func (ds *declarations) alternatives(s *shape) (literals, others []*shape, nullable bool) {
	seen := map[*shape]bool{s: true}
	var add func(items []*shape)
	add = func(items []*shape) {
		for _, item := range items {
			behind := item.follow()
			switch {
			case behind.form == union:
				if !seen[behind] {
					seen[behind] = true
					add(behind.items)
				}
			case behind.form == null:
				nullable = true
			case behind.form == literalValue:
				literals = append(literals, behind)
			default:
				others = append(others, item)
			}
		}
	}
	add(s.items)
	if limit := ds.detail.literals; limit > 0 && len(literals) > limit {
		wide := make([]*shape, len(literals))
		for i, l := range literals {
			wide[i] = kindShape(l.value.kind)
		}
		if widened := either(wide...); widened.form == union {
			others = append(others, widened.items...)
		} else {
			others = append(others, widened)
		}
		literals = nil
	}
	return literals, others, nullable
}
