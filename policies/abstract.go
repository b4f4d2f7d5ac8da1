package policies

import (
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
)

// kinds is a set of kinds of Cedar values.
type kinds int

const (
	kindBool kinds = 1 << iota
	kindLong
	kindString
	kindSet
	kindRecord
	kindEntity
	kindDecimal
	kindOther // of the extensions: addresses, times
	kindAny   = kindOther<<1 - 1
)

// String names the kinds in a message.
func (k kinds) String() string {
	names := []string{"a Boolean", "a whole number", "a text", "a set", "a record", "an entity", "a decimal",
		"a value of an extension"}
	var of []string
	for i, name := range names {
		if k&(1<<i) != 0 {
			of = append(of, name)
		}
	}
	if len(of) == 0 {
		return "nothing"
	}
	return strings.Join(of, " or ")
}

// presence is whether a record has a member.
type presence int

const (
	never presence = iota
	unknown
	maybe
	surely
)

// abstract is the set of possible values of an expression in a policy: the possible kinds, with
// restrictions for each kind.
type abstract struct {
	kinds   kinds
	mustErr bool // evaluating it always fails

	bools  []bool   // the Booleans that it can be; nil for both
	texts  []string // the texts; nil for any
	longs  span     // the whole numbers
	types  []cedar.EntityType
	uid    *cedar.EntityUID  // the one entity
	parent *cedar.EntityUID  // its server, if known
	in     []cedar.EntityUID // with uid: its ancestors, itself included
	closed bool              // members lists all
	exact  bool              // items lists the elements of a set

	element *abstract // of a set
	items   []abstract
	members map[string]member
}

// member is one of a record or an entity.
type member struct {
	value    abstract
	presence presence
}

// span is a range of whole numbers; a nil bound means unbounded.
type span struct{ least, most *int64 }

func anything() abstract { return abstract{kinds: kindAny} }

func failing() abstract { return abstract{mustErr: true} }

func of(k kinds) abstract { return abstract{kinds: k} }

func boolean(b bool) abstract { return abstract{kinds: kindBool, bools: []bool{b}} }

func text(of ...string) abstract { return abstract{kinds: kindString, texts: of} }

// someBool returns a Boolean with the given possible values.
func someBool(canBeTrue, canBeFalse bool) abstract {
	v := abstract{kinds: kindBool, bools: []bool{}}
	if canBeTrue {
		v.bools = append(v.bools, true)
	}
	if canBeFalse {
		v.bools = append(v.bools, false)
	}
	return v
}

func constant(v cedar.Value) abstract {
	switch v := v.(type) {
	case cedar.Boolean:
		return boolean(bool(v))
	case cedar.String:
		return text(string(v))
	case cedar.Long:
		n := int64(v)
		return abstract{kinds: kindLong, longs: span{&n, &n}}
	case cedar.EntityUID:
		return abstract{kinds: kindEntity, types: []cedar.EntityType{v.Type}, uid: &v}
	case cedar.Decimal:
		return of(kindDecimal)
	case cedar.Set:
		set := abstract{kinds: kindSet, exact: true}
		for element := range v.All() {
			set.items = append(set.items, constant(element))
		}
		element := union(set.items...)
		if len(set.items) == 0 {
			element = abstract{}
		}
		set.element = &element
		return set
	case cedar.Record:
		record := abstract{kinds: kindRecord, closed: true, members: map[string]member{}}
		for name, value := range v.All() {
			record.members[string(name)] = member{constant(value), surely}
		}
		return record
	}
	return of(kindOther)
}

func (a abstract) may(k kinds) bool { return a.kinds&k != 0 }

// couldBe reports whether a Boolean can be b.
func (a abstract) couldBe(b bool) bool {
	return !a.mustErr && a.may(kindBool) && (a.bools == nil || slices.Contains(a.bools, b))
}

// member returns a member of a record or an entity.
func (a abstract) member(name string) (abstract, presence) {
	if m, listed := a.members[name]; listed {
		return m.value, m.presence
	}
	if a.closed {
		return anything(), never
	}
	return anything(), unknown
}

// union returns the union of several sets of values.
func union(of ...abstract) abstract {
	if len(of) == 0 {
		return anything()
	}
	u := of[0]
	for _, v := range of[1:] {
		u = unite2(u, v)
	}
	return u
}

func unite2(a, b abstract) abstract {
	if a.mustErr {
		return b // the error was noted
	}
	if b.mustErr {
		return a
	}
	u := abstract{kinds: a.kinds | b.kinds}
	if lists := bothOf(a.texts, b.texts, a.may(kindString), b.may(kindString)); lists != nil {
		u.texts = lists
	}
	if lists := bothOf(a.bools, b.bools, a.may(kindBool), b.may(kindBool)); lists != nil {
		u.bools = lists
	}
	if lists := bothOf(a.types, b.types, a.may(kindEntity), b.may(kindEntity)); lists != nil {
		u.types = lists
	}
	if a.may(kindRecord) && !b.may(kindRecord) {
		u.members, u.closed = a.members, a.closed
	} else if b.may(kindRecord) && !a.may(kindRecord) {
		u.members, u.closed = b.members, b.closed
	} else if a.may(kindRecord) {
		u.members, u.closed = uniteMembers(a, b)
	}
	if a.element != nil && b.element != nil {
		element := unite2(*a.element, *b.element)
		u.element = &element
	}
	return u
}

// bothOf returns the union of two lists of possible values, where nil means any value.
func bothOf[T comparable](a, b []T, hasA, hasB bool) []T {
	switch {
	case hasA && a == nil, hasB && b == nil:
		return nil
	case !hasA:
		return b
	case !hasB:
		return a
	}
	joined := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(joined, v) {
			joined = append(joined, v)
		}
	}
	return joined
}

func uniteMembers(a, b abstract) (map[string]member, bool) {
	joined := map[string]member{}
	for name := range maps.Keys(a.members) {
		joined[name] = member{}
	}
	for name := range maps.Keys(b.members) {
		joined[name] = member{}
	}
	for name := range joined {
		inA, hasA := a.member(name)
		inB, hasB := b.member(name)
		m := member{value: unite2(inA, inB), presence: min(hasA, hasB)}
		switch {
		case hasA == never && hasB != never:
			m = member{inB, min(hasB, maybe)}
		case hasB == never && hasA != never:
			m = member{inA, min(hasA, maybe)}
		}
		joined[name] = m
	}
	return joined, a.closed && b.closed
}
