package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// relation returns a key that identifies a comparison in a condition, and whether it is
// the negation of another comparison with that key. The key is "" for other nodes. Equal
// comparisons have equal values in a policy, because inputs do not change during an
// evaluation.
func relation(n ast.IsNode) (key string, negated bool) {
	switch n := n.(type) {
	case ast.NodeTypeNotEquals:
		return fmt.Sprintf("%#v", ast.NodeTypeEquals(n)), true
	case ast.NodeTypeEquals, ast.NodeTypeIn, ast.NodeTypeContains, ast.NodeTypeContainsAll, ast.NodeTypeContainsAny,
		ast.NodeTypeIsEmpty,
		ast.NodeTypeLike, ast.NodeTypeIs, ast.NodeTypeIsIn, ast.NodeTypeExtensionCall:
		return fmt.Sprintf("%#v", n), false
	}
	return "", false
}

// known returns what was established about the very same comparison.
func (e *evaluation) known(n ast.IsNode, v abstract) abstract {
	if len(e.env.facts) == 0 || v.mustErr {
		return v
	}
	key, negated := relation(n)
	if holds, ok := e.env.facts[key]; ok && v.couldBe(holds != negated) {
		return boolean(holds != negated)
	}
	return v
}

// establish records that a comparison holds, or does not. It returns false if the opposite is
// established.
func (e *evaluation) establish(n ast.IsNode, holds bool) bool {
	key, negated := relation(n)
	if key == "" {
		return true
	}
	holds = holds != negated
	if was, known := e.env.facts[key]; known && was != holds {
		return false
	}
	if e.env.facts == nil {
		e.env.facts = map[string]bool{}
	}
	e.env.facts[key] = holds
	return true
}

// assumeLike records that a text matches a pattern.
func (e *evaluation) assumeLike(n ast.NodeTypeLike) bool {
	path, now := pathOf(n.Arg), e.silently(n.Arg)
	if path == nil || now.mustErr || now.kinds != kindString {
		return true
	}
	if now.texts != nil {
		return e.narrowTexts(n.Arg, now, slices.DeleteFunc(
			slices.Clone(now.texts), func(t string) bool { return !n.Value.Match(cedar.String(t)) }), true)
	}
	if e.env.patterns == nil {
		e.env.patterns = map[string][]types.Pattern{}
	}
	key := keyOf(path)
	e.env.patterns[key] = append(slices.Clone(e.env.patterns[key]), n.Value)
	return true
}

// fitsPatterns reports whether one of texts matches all patterns that a member is known to
// match.
func (e *evaluation) fitsPatterns(n ast.IsNode, texts []string) bool {
	path := pathOf(n)
	if path == nil || texts == nil {
		return true
	}
	return slices.ContainsFunc(texts, func(t string) bool {
		return !slices.ContainsFunc(e.env.patterns[keyOf(path)],
			func(p types.Pattern) bool { return !p.Match(cedar.String(t)) })
	})
}

// fitsTogether reports whether a text can match a pattern and all patterns that a member is
// known to match, judged by their prefixes and suffixes.
func (e *evaluation) fitsTogether(n ast.IsNode, pattern types.Pattern) bool {
	path := pathOf(n)
	if path == nil {
		return true
	}
	head, tail := fixedEnds(pattern)
	return !slices.ContainsFunc(e.env.patterns[keyOf(path)], func(p types.Pattern) bool {
		otherHead, otherTail := fixedEnds(p)
		return !strings.HasPrefix(head, otherHead) && !strings.HasPrefix(otherHead, head) ||
			!strings.HasSuffix(tail, otherTail) && !strings.HasSuffix(otherTail, tail)
	})
}

// fixedEnds returns what a pattern has before its first and behind its last wildcard, as its source writes that.
func fixedEnds(pattern types.Pattern) (head, tail string) {
	source := strings.ReplaceAll(strings.Trim(string(pattern.MarshalCedar()), `"`), `\*`, "\x00")
	head, _, _ = strings.Cut(source, "*")
	return head, source[strings.LastIndex(source, "*")+1:]
}

// comparisons contains the comparisons of a policy. The value is nil if the comparison can hold
// for some tool, or else the reason why it cannot.
type comparisons map[string]*finding

// compared records a comparison that does not depend on what was established before. why is
// empty if it can hold.
func (e *evaluation) compared(n ast.IsNode, why string) {
	if e.comparisons == nil {
		return
	}
	left, right, _ := operands(n)
	for _, side := range []ast.IsNode{left, right} {
		if _, narrowed := e.env.value(pathOf(side)); narrowed {
			return
		}
	}
	key := fmt.Sprintf("%#v", n)
	if was, known := e.comparisons[key]; why == "" || known && was == nil {
		e.comparisons[key] = nil
		return
	}
	e.comparisons[key] = &finding{why, wordOf(n)}
}

// mistyped returns a comparison whose sides have different types for every tool, or nil.
func (c comparisons) mistyped() *finding {
	var first *finding
	for _, f := range c {
		if f != nil && (first == nil || f.text < first.text) {
			first = f
		}
	}
	return first
}

// sameRecord reports whether two records can be equal, judged by their members.
func sameRecord(a, b abstract) bool {
	for _, pair := range [][2]abstract{{a, b}, {b, a}} {
		for name, m := range pair[0].members {
			other, presence := pair[1].member(name)
			if m.presence == surely && (presence == never || presence == surely && m.value.kinds&other.kinds == 0) {
				return false
			}
		}
	}
	return true
}
