package policies

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// binary evaluates an operator with two operands, both of which Cedar evaluates.
func (e *evaluation) binary(n, left, right ast.IsNode) abstract {
	l := e.eval(left)
	if l.mustErr {
		return l
	}
	r := e.eval(right)
	if r.mustErr {
		return r
	}
	switch n.(type) {
	case ast.NodeTypeEquals:
		return e.equal(n, left, right, l, r)
	case ast.NodeTypeNotEquals:
		why := e.why
		v := e.equal(n, left, right, l, r)
		e.why = why
		return someBool(v.couldBe(false), v.couldBe(true))
	case ast.NodeTypeLessThan, ast.NodeTypeLessThanOrEqual, ast.NodeTypeGreaterThan, ast.NodeTypeGreaterThanOrEqual:
		return e.order(n, left, right, l, r)
	case ast.NodeTypeAdd, ast.NodeTypeSub, ast.NodeTypeMult:
		return e.numbers(n, []ast.IsNode{left, right}, []abstract{l, r})
	case ast.NodeTypeIn:
		return e.in(n, l, r)
	}
	return e.member(n, l, r)
}

// equal evaluates ==. Values of different kinds are never equal, which is not an error.
func (e *evaluation) equal(n, left, right ast.IsNode, l, r abstract) abstract {
	switch {
	case l.kinds&r.kinds == 0:
		e.never(n, "%s is %s, and %s is %s", source(left), l.kinds, source(right), r.kinds)
		e.compared(n, fmt.Sprintf("%s is %s, and %s is %s: they are never equal", source(left), l.kinds, source(right),
			r.kinds))
		return boolean(false)
	case fmt.Sprintf("%#v", left) == fmt.Sprintf("%#v", right):
		return boolean(true)
	}
	e.compared(n, "")
	switch {
	case l.kinds != r.kinds || l.kinds&(l.kinds-1) != 0:
		return someBool(true, true)
	}
	switch l.kinds {
	case kindRecord:
		if !sameRecord(l, r) {
			e.never(n, "%s and %s have not the same members", source(left), source(right))
			return boolean(false)
		}
	case kindString:
		return e.oneOf(n, left, right, l.texts, r.texts)
	case kindBool:
		if l.bools == nil || r.bools == nil || len(l.bools) > 1 || len(r.bools) > 1 {
			return someBool(true, true)
		}
		return boolean(slices.Equal(l.bools, r.bools))
	case kindLong:
		if apart(l.longs, r.longs) {
			e.never(n, "%s is never %s", source(left), source(right))
			return boolean(false)
		}
	case kindEntity:
		if l.types != nil && r.types != nil && !slices.ContainsFunc(
			l.types, func(t cedar.EntityType) bool { return slices.Contains(r.types, t) }) {
			e.never(n, "%s is a %s, and %s is a %s", source(left), l.types[0], source(right), r.types[0])
			return boolean(false)
		}
		if l.uid != nil && r.uid != nil {
			if *l.uid != *r.uid {
				e.never(n, "%s is never %s", source(left), source(right))
			}
			return boolean(*l.uid == *r.uid)
		}
	}
	return someBool(true, true)
}

// oneOf compares texts of which some are known.
func (e *evaluation) oneOf(n, left, right ast.IsNode, l, r []string) abstract {
	if !e.fitsPatterns(left, r) || !e.fitsPatterns(right, l) {
		e.never(n, "%s is never %s", source(left), source(right))
		return boolean(false)
	}
	if l == nil || r == nil {
		return someBool(true, true)
	}
	if !slices.ContainsFunc(l, func(t string) bool { return slices.Contains(r, t) }) {
		known, at, other := l, left, r
		if len(l) == 1 && len(r) > 1 || pathOf(left) == nil {
			known, at, other = r, right, l
		}
		e.never(n, "%s is never %s: it is %s", source(at), listed(other), listed(known))
		return boolean(false)
	}
	return someBool(true, len(l) > 1 || len(r) > 1)
}

// apart reports whether two ranges are disjoint.
func apart(a, b span) bool {
	return a.least != nil && b.most != nil && *a.least > *b.most || b.least != nil && a.most != nil &&
		*b.least > *a.most
}

// order compares by size: whole numbers with whole numbers, times with times.
func (e *evaluation) order(n, left, right ast.IsNode, l, r abstract) abstract {
	const sized = kindLong | kindOther
	for _, side := range []struct {
		at ast.IsNode
		v  abstract
	}{{left, l}, {right, r}} {
		if !side.v.may(sized) {
			hint := ""
			if side.v.may(kindDecimal) {
				hint = "; decimals have .lessThan() and .greaterThan()"
			}
			e.err(n, "%s is %s, which cannot be compared by size%s", source(side.at), side.v.kinds, hint)
			return failing()
		}
	}
	if l.kinds&r.kinds&sized == 0 {
		e.err(n, "%s is %s, and %s is %s", source(left), l.kinds, source(right), r.kinds)
		return failing()
	}
	if l.kinds != kindLong || r.kinds != kindLong {
		return someBool(true, true)
	}
	switch n.(type) {
	case ast.NodeTypeGreaterThan:
		return e.less(n, left, right, r.longs, l.longs, true)
	case ast.NodeTypeGreaterThanOrEqual:
		return e.less(n, left, right, r.longs, l.longs, false)
	case ast.NodeTypeLessThan:
		return e.less(n, left, right, l.longs, r.longs, true)
	}
	return e.less(n, left, right, l.longs, r.longs, false)
}

// less evaluates whether a number of a can be, and must be, below one of b.
func (e *evaluation) less(n, left, right ast.IsNode, a, b span, strictly bool) abstract {
	can, must := true, false
	switch {
	case strictly && a.least != nil && *a.least == math.MaxInt64, strictly && b.most != nil && *b.most == math.MinInt64:
		can = false
	case a.least != nil && b.most != nil:
		can = *a.least < *b.most || !strictly && *a.least == *b.most
	}
	if a.most != nil && b.least != nil {
		must = *a.most < *b.least || !strictly && *a.most == *b.least
	}
	if !can {
		e.never(n, "%s is never so compared with %s", source(left), source(right))
	}
	return someBool(can, !must)
}

// arithmetic evaluates an operator of one number.
func (e *evaluation) arithmetic(n, arg ast.IsNode) abstract {
	v := e.eval(arg)
	if v.mustErr {
		return v
	}
	return e.numbers(n, []ast.IsNode{arg}, []abstract{v})
}

func (e *evaluation) numbers(n ast.IsNode, at []ast.IsNode, of []abstract) abstract {
	for i, v := range of {
		if !v.may(kindLong) {
			e.err(n, "%s is %s, and only whole numbers can be calculated with", source(at[i]), v.kinds)
			return failing()
		}
	}
	return abstract{kinds: kindLong, longs: calculated(n, of)}
}

// calculated returns a lower bound of a sum or a product of counts.
func calculated(n ast.IsNode, of []abstract) span {
	if len(of) != 2 || of[0].longs.least == nil || of[1].longs.least == nil {
		return span{}
	}
	a, b := *of[0].longs.least, *of[1].longs.least
	const large = 1 << 31
	if a < 0 || b < 0 || a > large || b > large {
		return span{}
	}
	least := a + b
	switch n.(type) {
	case ast.NodeTypeAdd:
	case ast.NodeTypeMult:
		least = a * b
	default:
		return span{}
	}
	return span{least: &least}
}

// in evaluates `in`: the same entity, or one of its ancestors.
func (e *evaluation) in(n ast.IsNode, l, r abstract) abstract {
	if !l.may(kindEntity) {
		e.err(n, "the left side of `in` is %s, not an entity", l.kinds)
		return failing()
	}
	if !r.may(kindEntity | kindSet) {
		e.err(n, "the right side of `in` is %s, not an entity or a set of them", r.kinds)
		return failing()
	}
	if slices.ContainsFunc(r.items, func(item abstract) bool { return !item.may(kindEntity) }) {
		e.err(n, "the right side of `in` is a set of %s, not of entities", r.element.kinds)
		return failing()
	}
	targets := r.items
	if r.uid != nil {
		targets = []abstract{r}
	} else if !r.exact {
		return someBool(true, true)
	}
	if every := cedar.NewEntityUID(typeAction, anyTool); len(targets) == 1 && targets[0].uid != nil &&
		*targets[0].uid == every && slices.Equal(l.types, []cedar.EntityType{typeAction}) {
		return boolean(true) // every tool's action is in that group
	}
	can, known := false, l.in != nil
	for _, target := range targets {
		can = can || target.uid == nil || e.canBeIn(l, *target.uid)
		known = known && target.uid != nil
	}
	if !can {
		e.never(n, "it is never in that")
	}
	return someBool(can, !can || !known)
}

// canBeIn reports whether an entity can be, or be in, another.
func (e *evaluation) canBeIn(a abstract, target cedar.EntityUID) bool {
	if a.in != nil {
		return slices.Contains(a.in, target)
	}
	if a.uid != nil {
		return *a.uid == target || a.uid.Type == typeTool || a.uid.Type == typeAction
	}
	if a.parent != nil && target.Type == typeServer {
		return *a.parent == target
	}
	return a.types == nil || slices.ContainsFunc(a.types, func(t cedar.EntityType) bool {
		return t == target.Type || t == typeTool && target.Type == typeServer
	})
}

// member evaluates operators and methods on the elements of sets.
func (e *evaluation) member(n ast.IsNode, operands ...abstract) abstract {
	set := operands[0]
	if !set.may(kindSet) {
		e.err(n, "%s is %s, not a set", source(ofSet(n)), set.kinds)
		return failing()
	}
	if len(operands) == 1 {
		return someBool(true, true)
	}
	other := operands[1]
	_, one := n.(ast.NodeTypeContains)
	if !one && !other.may(kindSet) {
		e.err(n, "the argument of %s is %s, not a set", operatorOf(n), other.kinds)
		return failing()
	}
	if set.element == nil {
		return someBool(true, true)
	}
	elements := []abstract{other}
	if !one {
		elements = other.items
		if !other.exact {
			return someBool(true, true)
		}
	}
	return e.canContain(n, *set.element, set, elements)
}

// canContain evaluates whether a set can have the elements: all of them, or any.
func (e *evaluation) canContain(n ast.IsNode, element abstract, set abstract, elements []abstract) abstract {
	_, any := n.(ast.NodeTypeContainsAny)
	found, missing, wrong := 0, "", ""
	for _, want := range elements {
		switch {
		case set.exact && len(set.items) == 0, element.kinds&want.kinds == 0:
			missing = fmt.Sprintf("%s holds %s, and never %s", source(ofSet(n)), element.kinds, want.kinds)
			wrong = missing
		case element.kinds == kindString && want.kinds == kindString && element.texts != nil && want.texts != nil &&
			!slices.ContainsFunc(want.texts, func(t string) bool { return slices.Contains(element.texts, t) }):
			missing = fmt.Sprintf("%s never has %s", source(ofSet(n)), listed(want.texts))
		default:
			found++
		}
	}
	e.compared(n, wrong)
	if missing != "" && (!any || found == 0) {
		e.never(n, "%s", missing)
		return boolean(false)
	}
	return someBool(true, true)
}

func ofSet(n ast.IsNode) ast.IsNode {
	if left, _, ok := operands(n); ok {
		return left
	}
	if n, ok := n.(ast.NodeTypeIsEmpty); ok {
		return n.Arg
	}
	return n
}

func operatorOf(n ast.IsNode) string {
	switch n.(type) {
	case ast.NodeTypeContainsAll:
		return "containsAll"
	case ast.NodeTypeContainsAny:
		return "containsAny"
	}
	return "contains"
}

// extension evaluates a function of Cedar's extensions. The types of its operands and of its
// result are known.
func (e *evaluation) extension(n ast.NodeTypeExtensionCall) abstract {
	name := string(n.Name)
	var of []abstract
	for _, arg := range n.Args {
		v := e.eval(arg)
		if v.mustErr {
			return v
		}
		of = append(of, v)
	}
	makes := map[string]kinds{"decimal": kindDecimal, "ip": kindOther, "datetime": kindOther, "duration": kindOther}
	if made, ok := makes[name]; ok {
		return e.parse(n, name, made, of)
	}
	wants := kindOther
	if slices.Contains([]string{"lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual"}, name) {
		wants = kindDecimal
	}
	for i, v := range of {
		if !v.may(wants) {
			e.err(n, "%s is %s, and %s needs %s", source(n.Args[i]), v.kinds, name, wants)
			return failing()
		}
	}
	if strings.HasPrefix(name, "is") || wants == kindDecimal {
		return someBool(true, true)
	}
	return abstract{kinds: kindOther | kindLong}
}

// parse evaluates a function that parses a text. A literal is parsed; for other texts, the
// function may succeed or fail.
func (e *evaluation) parse(n ast.NodeTypeExtensionCall, name string, made kinds, args []abstract) abstract {
	if len(args) != 1 || !args[0].may(kindString) {
		e.err(n, "%s is made from a text", name)
		return failing()
	}
	if len(args[0].texts) != 1 {
		return abstract{kinds: made}
	}
	read := map[string]func(string) error{
		"decimal":  func(s string) error { _, err := types.ParseDecimal(s); return err },
		"ip":       func(s string) error { _, err := types.ParseIPAddr(s); return err },
		"datetime": func(s string) error { _, err := types.ParseDatetime(s); return err },
		"duration": func(s string) error { _, err := types.ParseDuration(s); return err },
	}[name]
	if err := read(args[0].texts[0]); err != nil {
		e.err(n, "%s cannot be made from %s", name, listed(args[0].texts))
		return failing()
	}
	return abstract{kinds: made}
}
