package policies

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// environment contains the facts that a condition has established about members, by path.
type environment struct {
	has    map[string]bool     // present, or absent
	values map[string]abstract // narrower than their types
	// facts are the results of comparisons, by the key that relation returns, and patterns
	// are the patterns that texts match.
	facts    map[string]bool
	patterns map[string][]types.Pattern
}

func (env environment) clone() environment {
	return environment{maps.Clone(env.has), maps.Clone(env.values), maps.Clone(env.facts), maps.Clone(env.patterns)}
}

func keyOf(path []string) string { return strings.Join(path, "\x00") }

func (env environment) present(path []string) bool { return path != nil && env.has[keyOf(path)] }

func (env environment) absent(path []string) bool {
	present, known := env.has[keyOf(path)]
	return path != nil && known && !present
}

func (env environment) value(path []string) (abstract, bool) {
	if path == nil {
		return abstract{}, false
	}
	v, ok := env.values[keyOf(path)]
	return v, ok
}

func (env *environment) setPresent(path []string, present bool) {
	if path == nil {
		return
	}
	if env.has == nil {
		env.has = map[string]bool{}
	}
	env.has[keyOf(path)] = present
}

func (env *environment) setValue(path []string, v abstract) {
	if path == nil {
		return
	}
	if env.values == nil {
		env.values = map[string]abstract{}
	}
	env.values[keyOf(path)] = v
}

// assume records that a part of a condition is true, or false. It returns false if that
// contradicts what was established before.
func (e *evaluation) assume(n ast.IsNode, holds bool) bool {
	if !e.establish(n, holds) {
		return false
	}
	switch n := n.(type) {
	case ast.NodeTypeNot:
		return e.assume(n.Arg, !holds)
	case ast.NodeTypeAnd:
		if holds {
			return e.assume(n.Left, true) && e.assume(n.Right, true)
		}
		return true
	case ast.NodeTypeOr:
		if !holds {
			return e.assume(n.Left, false) && e.assume(n.Right, false)
		}
		return e.assumeEither(n.Left, n.Right)
	case ast.NodeTypeHas:
		path := pathOf(n)
		if holds && e.env.absent(path) || !holds && e.env.present(path) {
			return false
		}
		e.env.setPresent(path, holds)
		return true
	case ast.NodeTypeAccess:
		return e.narrow(n, boolean(holds))
	case ast.NodeTypeEquals:
		return e.assumeEqual(n.BinaryNode, holds)
	case ast.NodeTypeNotEquals:
		return e.assumeEqual(n.BinaryNode, !holds)
	case ast.NodeTypeContains:
		return e.assumeContains(n.BinaryNode, holds)
	case ast.NodeTypeLike:
		return !holds || e.assumeLike(n)
	case ast.NodeTypeIsEmpty:
		return e.assumeEmpty(n, holds)
	case ast.NodeTypeLessThan:
		return e.assumeOrder(n.Left, n.Right, holds, true)
	case ast.NodeTypeLessThanOrEqual:
		return e.assumeOrder(n.Left, n.Right, holds, false)
	case ast.NodeTypeGreaterThan:
		return e.assumeOrder(n.Right, n.Left, holds, true)
	case ast.NodeTypeGreaterThanOrEqual:
		return e.assumeOrder(n.Right, n.Left, holds, false)
	}
	return true
}

// assumeEither assumes that one of two conditions is true. It keeps the facts that both
// establish.
func (e *evaluation) assumeEither(left, right ast.IsNode) bool {
	before := e.env.clone()
	isLeft := e.assume(left, true)
	byLeft := e.env
	e.env = before.clone()
	isRight := e.assume(right, true)
	byRight := e.env
	switch {
	case !isLeft && !isRight:
		e.env = before
		return false
	case !isLeft:
		return true
	case !isRight:
		e.env = byLeft
		return true
	}
	e.env = before
	for key, present := range byLeft.has {
		if other, known := byRight.has[key]; known && other == present {
			e.env.setPresent(strings.Split(key, "\x00"), present)
		}
	}
	for key, v := range byLeft.values {
		if other, known := byRight.values[key]; known {
			e.env.setValue(strings.Split(key, "\x00"), unite2(v, other))
		}
	}
	return true
}

// silently evaluates without recording errors, which were recorded before.
func (e *evaluation) silently(n ast.IsNode) abstract {
	errors, why := e.errors, e.why
	v := e.eval(n)
	e.errors, e.why = errors, why
	return v
}

// narrow records that a member is to. It returns false if that is impossible.
func (e *evaluation) narrow(n ast.IsNode, to abstract) bool {
	path := pathOf(n)
	now := e.silently(n)
	if path == nil || now.mustErr || now.kinds == kindAny {
		return true
	}
	if now.may(kindBool) && to.kinds == kindBool && len(to.bools) == 1 && !now.couldBe(to.bools[0]) {
		return false
	}
	e.env.setValue(path, to)
	return true
}

func (e *evaluation) assumeEqual(n ast.BinaryNode, holds bool) bool {
	for _, sides := range [][2]ast.IsNode{{n.Left, n.Right}, {n.Right, n.Left}} {
		literal, isValue := sides[1].(ast.NodeValue)
		if !isValue || pathOf(sides[0]) == nil {
			continue
		}
		now, value := e.silently(sides[0]), constant(literal.Value)
		switch {
		case now.mustErr || now.kinds == kindAny:
		case holds && now.kinds&value.kinds == 0:
			return false
		case value.kinds == kindString:
			return e.narrowTexts(sides[0], now, value.texts, holds)
		case holds && value.kinds == kindLong && now.kinds == kindLong:
			if apart(now.longs, value.longs) {
				return false
			}
			e.env.setValue(pathOf(sides[0]), value)
		case holds && value.kinds == kindEntity && now.kinds == kindEntity:
			if now.uid != nil {
				return *now.uid == *value.uid
			}
			now.uid = value.uid
			e.env.setValue(pathOf(sides[0]), now)
		case value.kinds == kindBool:
			return e.narrow(sides[0], boolean(value.couldBe(holds)))
		}
	}
	return true
}

// assumeEmpty records that a set is empty.
func (e *evaluation) assumeEmpty(n ast.NodeTypeIsEmpty, holds bool) bool {
	if path := pathOf(n.Arg); holds && path != nil {
		e.env.setValue(path, abstract{kinds: kindSet, exact: true, element: &abstract{}})
	}
	return true
}

// narrowTexts records that a member is one of texts, or none of them if are is false. It
// returns false if that is impossible.
func (e *evaluation) narrowTexts(n ast.IsNode, now abstract, texts []string, are bool) bool {
	if !now.may(kindString) {
		return !are
	}
	if now.texts == nil {
		if are {
			e.env.setValue(pathOf(n), text(texts...))
		}
		return true
	}
	left := []string{}
	for _, t := range now.texts {
		if slices.Contains(texts, t) == are {
			left = append(left, t)
		}
	}
	if len(left) == 0 && now.kinds == kindString {
		return false
	}
	e.env.setValue(pathOf(n), text(left...))
	return true
}

// assumeContains records that a member is an element of a literal set.
func (e *evaluation) assumeContains(n ast.BinaryNode, holds bool) bool {
	set, now := e.silently(n.Left), e.silently(n.Right)
	if pathOf(n.Right) == nil || !set.exact || now.mustErr || now.kinds == kindAny {
		return true
	}
	var texts []string
	for _, item := range set.items {
		if item.kinds != kindString || len(item.texts) != 1 {
			return true
		}
		texts = append(texts, item.texts[0])
	}
	return e.narrowTexts(n.Right, now, texts, holds)
}

// assumeOrder records that low is below high, or that it is not. It returns false if that is
// impossible.
func (e *evaluation) assumeOrder(low, high ast.IsNode, holds, strictly bool) bool {
	if !holds {
		low, high, strictly = high, low, !strictly
	}
	l, h := e.silently(low), e.silently(high)
	if l.mustErr || h.mustErr || l.kinds != kindLong || h.kinds != kindLong {
		return true
	}
	gap := int64(0)
	if strictly {
		gap = 1
	}
	if l.longs.least != nil && h.longs.most != nil && *l.longs.least > *h.longs.most-gap &&
		*h.longs.most > math.MinInt64 {
		return false
	}
	if most := h.longs.most; most != nil && *most > math.MinInt64 &&
		(l.longs.most == nil || *l.longs.most > *most-gap) {
		bound := *most - gap
		e.env.setValue(pathOf(low), abstract{kinds: kindLong, longs: span{l.longs.least, &bound}})
	}
	if least := l.longs.least; least != nil && *least < math.MaxInt64 &&
		(h.longs.least == nil || *h.longs.least < *least+gap) {
		bound := *least + gap
		e.env.setValue(pathOf(high), abstract{kinds: kindLong, longs: span{&bound, h.longs.most}})
	}
	return true
}

// variable returns the possible values of a variable, narrowed by the conditions so far.
func (e *evaluation) variable(name string) abstract {
	if narrowed, known := e.env.value([]string{name}); known {
		return narrowed
	}
	v, known := e.variables[name]
	if !known {
		v = e.declared(name)
		if e.variables == nil {
			e.variables = map[string]abstract{}
		}
		e.variables[name] = v
	}
	return v
}

// declared returns the values that a variable can have in any request.
func (e *evaluation) declared(name string) abstract {
	switch name {
	case "principal":
		return abstract{
			kinds: kindEntity, types: []cedar.EntityType{typeUser}, closed: true,
			members: map[string]member{
				"name": {of(kindString), surely}, "groups": {textSet(), surely},
				"claims": {abstract{kinds: kindRecord}, surely}, // the issuer's
			},
		}
	case "action":
		return e.action()
	case "resource":
		return e.resource()
	}
	zero := int64(0)
	count := abstract{kinds: kindLong, longs: span{least: &zero}}
	session := abstract{kinds: kindRecord, closed: true, members: map[string]member{
		"calls": {count, surely}, "runCalls": {count, surely},
		"servers": {textSet(), surely}, // one may be added later; names that look misspelt are found elsewhere
	}}
	return abstract{kinds: kindRecord, closed: true, members: map[string]member{
		"session": {session, surely}, "input": {inputOf(e.tool.input), surely},
		"paths": {asPaths(inputOf(e.tool.input)), surely}, "elicits": {of(kindBool), surely},
	}}
}

// textSet returns any set of texts.
func textSet() abstract {
	element := of(kindString)
	return abstract{kinds: kindSet, element: &element}
}

func (e *evaluation) action() abstract {
	action := abstract{kinds: kindEntity, types: []cedar.EntityType{typeAction}, closed: true}
	if e.tool.id != "" {
		uid := cedar.NewEntityUID(typeAction, cedar.String(e.tool.id))
		action.uid, action.in = &uid, []cedar.EntityUID{uid, cedar.NewEntityUID(typeAction, anyTool)}
	}
	return action
}

func (e *evaluation) resource() abstract {
	flag := of(kindBool)
	claims := abstract{kinds: kindRecord, closed: true, members: map[string]member{
		"readOnly": {flag, surely}, "destructive": {flag, surely}, "idempotent": {flag, surely},
		"openWorld": {flag, surely},
	}}
	risks := text(riskWords()...)
	resource := abstract{kinds: kindEntity, types: []cedar.EntityType{typeTool}, closed: true,
		members: map[string]member{
			"server": {text(e.servers...), surely}, "name": {of(kindString), surely}, "risk": {risks, surely},
			"allowed": {flag, surely}, "denied": {flag, surely}, "flagged": {flag, surely}, "claims": {claims, surely},
		}}
	if e.tool.server != "" {
		server := cedar.NewEntityUID(typeServer, cedar.String(e.tool.server))
		resource.parent = &server
		resource.members["server"] = member{text(e.tool.server), surely}
	}
	if e.tool.id != "" {
		uid, server := cedar.NewEntityUID(typeTool, cedar.String(e.tool.id)),
			cedar.NewEntityUID(typeServer, cedar.String(e.tool.server))
		resource.uid, resource.in = &uid, []cedar.EntityUID{uid, server}
		resource.members["name"] = member{text(e.tool.name), surely}
	}
	return resource
}
