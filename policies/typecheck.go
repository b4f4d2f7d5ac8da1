package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// typecheck evaluates a policy's conditions without a call, separately for each tool that
// its head can match: over types, over the values of members with few values, and over
// facts that earlier parts of the condition have established. It finds policies that
// match no call, and policies that fail to evaluate, which denies.
//
// A member of unknown type can have any value, so that typecheck does not report policies
// without a mistake.
func typecheck(policy *cedar.Policy, tools []*toolShape, w *world) (problem, word string) {
	p := (*ast.Policy)(policy.AST())
	if len(tools) == 0 {
		if at, ok := p.Action.(ast.ScopeTypeEq); ok && at.Entity == cedar.NewEntityUID(typeAction, anyTool) {
			return `it can never match: Action::"call" is the group of all calls; write action in Action::"call"`, ""
		}
		if len(w.tools) > 0 {
			return "it can never match: no tool fits both action and resource of its head", ""
		}
		tools = []*toolShape{{}} // nothing is known of any
	}
	never, always, compared := 0, 0, comparisons{}
	var first, firstError *finding
	var whose string
	for _, tool := range tools {
		e := &evaluation{tool: tool, servers: w.servers, comparisons: compared}
		e.conditions(p.Conditions)
		switch {
		case e.mustErr:
			always++
		case !e.mayMatch:
			never++
			if first == nil {
				first = e.why
			}
		}
		if firstError == nil && len(e.errors) > 0 {
			firstError, whose = &e.errors[0], tool.id
		}
	}
	of := func(id string) string {
		if id == "" || len(tools) == 1 {
			return ""
		}
		return fmt.Sprintf(" (for %s)", id)
	}
	switch {
	case always == len(tools):
		return fmt.Sprintf("the rule fails to evaluate for every call, so every call is denied: %s",
			firstError.text), firstError.word
	case firstError != nil:
		return fmt.Sprintf("the rule can fail to evaluate, which denies the call: %s%s", firstError.text,
			of(whose)), firstError.word
	case never+always == len(tools):
		text, word := "its conditions contradict each other", ""
		if first != nil {
			text, word = first.text, first.word
		}
		return fmt.Sprintf("it can never match: %s", text), word
	}
	if wrong := compared.mistyped(); wrong != nil {
		return "a part of it never holds: " + wrong.text, wrong.word
	}
	return "", ""
}

// finding is one thing that is wrong, and a word of the policy to find it by.
type finding struct{ text, word string }

// evaluation is that of one policy for the calls of one tool.
type evaluation struct {
	tool    *toolShape
	servers []string
	env     environment
	// comparisons are of all tools together.
	comparisons comparisons
	variables   map[string]abstract // as far as they were asked for

	errors   []finding // expressions that can fail to evaluate
	mustErr  bool      // evaluation fails for every call
	mayMatch bool
	why      *finding // why it cannot match
}

// conditions evaluates `when` and `unless` clauses, all of which must hold.
func (e *evaluation) conditions(conditions []ast.ConditionType) {
	e.env = environment{}
	for _, condition := range conditions {
		got := e.eval(condition.Body)
		if got.mustErr {
			e.mustErr = true
			return
		}
		if !got.may(kindBool) && got.kinds != kindAny {
			e.err(condition.Body, "a condition is %s, not a Boolean", got.kinds)
			e.mustErr = true
			return
		}
		wanted := condition.Condition == ast.ConditionWhen
		if !got.couldBe(wanted) {
			e.explain(condition.Body, wanted)
			return
		}
		if !e.assume(condition.Body, wanted) {
			e.explain(condition.Body, wanted)
			return
		}
	}
	e.mayMatch = true
}

// explain records why the conditions cannot hold, unless a more specific reason is known.
func (e *evaluation) explain(body ast.IsNode, wanted bool) {
	if e.why == nil {
		e.why = &finding{fmt.Sprintf("a condition is always %v", !wanted), wordOf(body)}
	}
}

// err notes something that can err.
func (e *evaluation) err(at ast.IsNode, format string, args ...any) {
	e.errors = append(e.errors, finding{fmt.Sprintf(format, args...), wordOf(at)})
}

// never notes a comparison that is always false.
func (e *evaluation) never(at ast.IsNode, format string, args ...any) {
	if e.why == nil {
		e.why = &finding{fmt.Sprintf(format, args...), wordOf(at)}
	}
}

// eval returns what a part of a condition can be.
func (e *evaluation) eval(n ast.IsNode) abstract { return e.known(n, e.evaluate(n)) }

func (e *evaluation) evaluate(n ast.IsNode) abstract {
	switch n := n.(type) {
	case ast.NodeValue:
		return constant(n.Value)
	case ast.NodeTypeVariable:
		return e.variable(string(n.Name))
	case ast.NodeTypeAnd:
		return e.and(n.Left, n.Right)
	case ast.NodeTypeOr:
		return e.or(n.Left, n.Right)
	case ast.NodeTypeNot:
		return e.not(n.Arg)
	case ast.NodeTypeIfThenElse:
		return e.choose(n)
	case ast.NodeTypeAccess:
		return e.access(n)
	case ast.NodeTypeHas:
		return e.has(n)
	case ast.NodeTypeSet:
		return e.set(n)
	case ast.NodeTypeRecord:
		return e.record(n)
	case ast.NodeTypeLike:
		return e.like(n)
	case ast.NodeTypeIs:
		return e.is(n)
	case ast.NodeTypeIsIn:
		return e.isIn(n)
	case ast.NodeTypeNegate:
		return e.arithmetic(n, n.Arg)
	case ast.NodeTypeIsEmpty:
		return e.member(n, e.eval(n.Arg))
	case ast.NodeTypeExtensionCall:
		return e.extension(n)
	}
	if left, right, ok := operands(n); ok {
		return e.binary(n, left, right)
	}
	return e.tags(n)
}

// tags evaluates what asks for tags: no entity of a request has any.
func (e *evaluation) tags(n ast.IsNode) abstract {
	switch n.(type) {
	case ast.NodeTypeHasTag:
		e.never(n, "nothing has tags")
		return boolean(false)
	case ast.NodeTypeGetTag:
		e.err(n, "nothing has tags")
		return failing()
	}
	return anything()
}

// operands returns the two sides of a binary operator.
func operands(n ast.IsNode) (left, right ast.IsNode, ok bool) {
	switch n := n.(type) {
	case ast.NodeTypeEquals:
		return n.Left, n.Right, true
	case ast.NodeTypeNotEquals:
		return n.Left, n.Right, true
	case ast.NodeTypeLessThan:
		return n.Left, n.Right, true
	case ast.NodeTypeLessThanOrEqual:
		return n.Left, n.Right, true
	case ast.NodeTypeGreaterThan:
		return n.Left, n.Right, true
	case ast.NodeTypeGreaterThanOrEqual:
		return n.Left, n.Right, true
	case ast.NodeTypeAdd:
		return n.Left, n.Right, true
	case ast.NodeTypeSub:
		return n.Left, n.Right, true
	case ast.NodeTypeMult:
		return n.Left, n.Right, true
	case ast.NodeTypeIn:
		return n.Left, n.Right, true
	case ast.NodeTypeContains:
		return n.Left, n.Right, true
	case ast.NodeTypeContainsAll:
		return n.Left, n.Right, true
	case ast.NodeTypeContainsAny:
		return n.Left, n.Right, true
	}
	return nil, nil, false
}

// and evaluates the right side under the assumption that the left one is true.
func (e *evaluation) and(left, right ast.IsNode) abstract {
	l := e.operand(left)
	if l.mustErr || !l.couldBe(true) {
		return l
	}
	before := e.env.clone()
	if !e.assume(left, true) {
		e.env = before
		return boolean(false)
	}
	r := e.operand(right)
	e.env = before
	switch {
	case r.mustErr && !l.couldBe(false):
		return r
	case r.mustErr:
		return boolean(false) // or an error, which was noted
	}
	return someBool(l.couldBe(true) && r.couldBe(true), l.couldBe(false) || r.couldBe(false))
}

// or evaluates the right side under the assumption that the left one is false.
func (e *evaluation) or(left, right ast.IsNode) abstract {
	why := e.why
	l := e.operand(left)
	if l.mustErr || !l.couldBe(false) {
		return l
	}
	before := e.env.clone()
	e.assume(left, false)
	r := e.operand(right)
	e.env = before
	if l.couldBe(true) || r.couldBe(true) {
		e.why = why // one side that cannot hold is not a problem
	}
	switch {
	case r.mustErr && !l.couldBe(true):
		return r
	case r.mustErr:
		return boolean(true)
	}
	return someBool(l.couldBe(true) || r.couldBe(true), l.couldBe(false) && r.couldBe(false))
}

// operand evaluates what must be a Boolean.
func (e *evaluation) operand(n ast.IsNode) abstract {
	v := e.eval(n)
	if !v.mustErr && !v.may(kindBool) {
		e.err(n, "%s is %s, where a Boolean is needed", source(n), v.kinds)
		return failing()
	}
	return v
}

func (e *evaluation) not(n ast.IsNode) abstract {
	why := e.why
	v := e.operand(n)
	e.why = why // what never holds, always does when it is negated
	if v.mustErr {
		return v
	}
	return someBool(v.couldBe(false), v.couldBe(true))
}

func (e *evaluation) choose(n ast.NodeTypeIfThenElse) abstract {
	condition := e.operand(n.If)
	if condition.mustErr {
		return condition
	}
	var branches []abstract
	before := e.env.clone()
	for _, branch := range []struct {
		holds bool
		body  ast.IsNode
	}{{true, n.Then}, {false, n.Else}} {
		if condition.couldBe(branch.holds) && e.assume(n.If, branch.holds) {
			branches = append(branches, e.eval(branch.body))
		}
		e.env = before.clone()
	}
	return union(branches...)
}

// access reads a member.
func (e *evaluation) access(n ast.NodeTypeAccess) abstract {
	of := e.eval(n.Arg)
	if of.mustErr {
		return of
	}
	name := string(n.Value)
	if of.kinds != kindAny && !of.may(kindRecord|kindEntity) {
		e.err(n, "%s is %s and has no members", source(n.Arg), of.kinds)
		return failing()
	}
	if narrowed, known := e.env.value(pathOf(n)); known {
		return narrowed
	}
	member, has := of.member(name)
	switch {
	case has == surely || e.env.present(pathOf(n)):
	case has == never:
		e.err(n, "there is no %s", source(n))
		return failing()
	case has == maybe:
		e.err(n, "%s may be missing: test for it with `has` before", source(n))
	}
	return member
}

func (e *evaluation) has(n ast.NodeTypeHas) abstract {
	of := e.eval(n.Arg)
	if of.mustErr {
		return of
	}
	if of.kinds != kindAny && !of.may(kindRecord|kindEntity) {
		e.err(n, "%s is %s, so `has` fails", source(n.Arg), of.kinds)
		return failing()
	}
	path := pathOf(n)
	_, has := of.member(string(n.Value))
	switch {
	case e.env.absent(path):
		return boolean(false)
	case has == surely || e.env.present(path):
		return boolean(true)
	case has == never:
		e.never(n, "%s has no %s", source(n.Arg), string(n.Value))
		return boolean(false)
	}
	return someBool(true, true)
}

func (e *evaluation) set(n ast.NodeTypeSet) abstract {
	set := abstract{kinds: kindSet, exact: true}
	for _, element := range n.Elements {
		v := e.eval(element)
		if v.mustErr {
			return v
		}
		set.items = append(set.items, v)
	}
	element := union(set.items...)
	if len(set.items) == 0 {
		element = abstract{}
	}
	set.element = &element
	return set
}

func (e *evaluation) record(n ast.NodeTypeRecord) abstract {
	record := abstract{kinds: kindRecord, closed: true, members: map[string]member{}}
	for _, element := range n.Elements {
		v := e.eval(element.Value)
		if v.mustErr {
			return v
		}
		record.members[string(element.Key)] = member{v, surely}
	}
	return record
}

func (e *evaluation) like(n ast.NodeTypeLike) abstract {
	v := e.eval(n.Arg)
	switch {
	case v.mustErr:
		return v
	case !v.may(kindString):
		e.err(n, "%s is %s, and `like` needs a text", source(n.Arg), v.kinds)
		return failing()
	case v.texts == nil:
		if !e.fitsTogether(n.Arg, n.Value) {
			e.never(n, "%s never has both forms", source(n.Arg))
			return boolean(false)
		}
		return someBool(true, true)
	}
	matches := 0
	for _, text := range v.texts {
		if n.Value.Match(cedar.String(text)) {
			matches++
		}
	}
	if matches == 0 {
		e.never(n, "%s is like that never: it is %s", source(n.Arg), listed(v.texts))
	}
	return someBool(matches > 0, matches < len(v.texts))
}

func (e *evaluation) is(n ast.NodeTypeIs) abstract {
	v := e.eval(n.Left)
	switch {
	case v.mustErr:
		return v
	case !v.may(kindEntity):
		e.err(n, "%s is %s, and `is` needs an entity", source(n.Left), v.kinds)
		return failing()
	case v.types == nil:
		return someBool(true, true)
	}
	is := slices.Contains(v.types, n.EntityType)
	if !is {
		e.never(n, "%s is never a %s", source(n.Left), n.EntityType)
	}
	return someBool(is, !is || len(v.types) > 1)
}

func (e *evaluation) isIn(n ast.NodeTypeIsIn) abstract {
	is := e.is(n.NodeTypeIs)
	if is.mustErr || !is.couldBe(true) {
		return is
	}
	in := e.in(n, e.eval(n.Left), e.eval(n.Entity))
	if in.mustErr {
		return in
	}
	return someBool(in.couldBe(true), is.couldBe(false) || in.couldBe(false))
}

// wordOf finds a word of a part of a policy that its source has, too.
func wordOf(n ast.IsNode) string {
	word := ""
	ast.Inspect(ast.NewNode(n), func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeTypeAccess:
			if word == "" {
				word = string(n.Value)
			}
		case ast.NodeTypeHas:
			if word == "" {
				word = string(n.Value)
			}
		}
		return true
	})
	return word
}

// source names a part of a policy in a message.
func source(n ast.IsNode) string {
	if path := pathOf(n); path != nil {
		return strings.Join(path, ".")
	}
	switch n := n.(type) {
	case ast.NodeValue:
		return fmt.Sprintf("%.60s", n.Value.MarshalCedar())
	case ast.NodeTypeSet:
		return "the set"
	case ast.NodeTypeRecord:
		return "the record"
	}
	return "an expression"
}

// listed names texts in a message.
func listed(texts []string) string {
	const most = 6
	quoted := make([]string, 0, most)
	for i, text := range texts {
		if i == most {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, fmt.Sprintf("%.40q", text))
	}
	return strings.Join(quoted, " or ")
}
