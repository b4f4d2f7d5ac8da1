package policies

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// The limits of one policy. The parser, the checks and the evaluation are recursive, and some take
// time with the square of what a policy has.
const (
	maxPolicyText = 64 << 10 // bytes without texts and comments
	maxNested     = 200      // brackets within brackets, members of members, and sets and records in one set
)

// parse returns the policies of a file.
func parse(file File) (cedar.PolicyList, error) {
	if err := checkSize(file); err != nil {
		return nil, err
	}
	list, err := cedar.NewPolicyListFromBytes(file.Name, file.Source)
	if err != nil {
		return nil, fmt.Errorf("policy file %q: %w", file.Name, err)
	}
	return list, nil
}

// checkSize returns an error if a policy of the file exceeds a limit.
func checkSize(file File) error {
	source, line, m := file.Source, 1, policyMeasure{}
	for at := 0; at < len(source); at++ {
		switch c := source[at]; {
		case c == '"':
			end := endOfText(source[at:])
			line += bytes.Count(source[at:at+end], []byte("\n"))
			at += end - 1
			m.last, m.apart = c, false
		case c == '/' && at+1 < len(source) && source[at+1] == '/':
			for at+1 < len(source) && source[at+1] != '\n' {
				at++
			}
		case c == ';':
			m = policyMeasure{}
		default:
			if c == '\n' {
				line++
			}
			if reason := m.add(c); reason != "" {
				return fmt.Errorf("policy file %q line %d: the policy has %s: divide it", file.Name, line, reason)
			}
		}
	}
	return nil
}

// policyMeasure measures one policy without its texts and comments.
type policyMeasure struct {
	size    int
	open    []bracket
	members int  // of the current chain: context.input.path
	last    byte // the last byte that is not a blank
	apart   bool // blanks follow it
}

// bracket is an open bracket.
type bracket struct {
	char  byte
	items int // of a set: the sets and records in it
}

// add adds a byte, and returns which limit the policy exceeds.
func (m *policyMeasure) add(c byte) (exceeds string) {
	m.size++
	switch {
	case c == ' ', c == '\t', c == '\r', c == '\n':
		m.apart = true
		return m.check()
	case c == '.':
		m.members++
	case c == '[' && (isNameByte(m.last) || bytes.IndexByte([]byte("])\""), m.last) >= 0) && !m.apart:
		m.members++
		m.open = append(m.open, bracket{char: '('})
	case c == '[', c == '{', c == '(':
		if top := len(m.open) - 1; c != '(' && top >= 0 && m.open[top].char == '[' {
			m.open[top].items++
		}
		m.open = append(m.open, bracket{char: c})
	case bytes.IndexByte([]byte(")]}"), c) >= 0:
		if reason := m.check(); reason != "" { // of the bracket that ends
			return reason
		}
		m.open = m.open[:max(0, len(m.open)-1)]
	case !isNameByte(c), m.apart && m.last != '.': // an operator, or another word
		m.members = 0
	}
	m.last, m.apart = c, false
	return m.check()
}

func (m *policyMeasure) check() (exceeds string) {
	switch top := len(m.open) - 1; {
	case m.size > maxPolicyText:
		return fmt.Sprintf("more than %d bytes without its texts", maxPolicyText)
	case top >= maxNested:
		return fmt.Sprintf("more than %d brackets within brackets", maxNested)
	case m.members > maxNested:
		return fmt.Sprintf("a member of more than %d members", maxNested)
	case top >= 0 && m.open[top].items > maxNested:
		return fmt.Sprintf("a set of more than %d sets and records", maxNested)
	}
	return ""
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// endOfText returns the position after the closing quote of a text.
func endOfText(source []byte) int {
	for at := 1; at < len(source); at++ {
		switch source[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(source)
}

// operation is an operator of a policy that takes more time for larger arguments.
type operation struct {
	paths [][]string // of its operands; nil for an operand without a path
	chunk int        // of like: the bytes of the longest part between stars; 0 for comparisons
}

// operationsOf returns the operations of a policy.
func operationsOf(policy *cedar.Policy) (list []operation) {
	compare := func(n ast.BinaryNode) {
		if !isLiteral(n.Left) || !isLiteral(n.Right) {
			list = append(list, operation{paths: [][]string{operand(n.Left), operand(n.Right)}})
		}
	}
	for _, condition := range (*ast.Policy)(policy.AST()).Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeEquals:
				compare(n.BinaryNode)
			case ast.NodeTypeNotEquals:
				compare(n.BinaryNode)
			case ast.NodeTypeContains:
				compare(n.BinaryNode)
			case ast.NodeTypeContainsAll:
				compare(n.BinaryNode)
			case ast.NodeTypeContainsAny:
				compare(n.BinaryNode)
			case ast.NodeTypeLike:
				list = append(list, operation{paths: [][]string{operand(n.Arg)}, chunk: longestChunk(n)})
			}
			return true
		})
	}
	return list
}

func isLiteral(n ast.IsNode) bool {
	if set, ok := n.(ast.NodeTypeSet); ok {
		return !slices.ContainsFunc(set.Elements, func(n ast.IsNode) bool { return !isLiteral(n) })
	}
	_, ok := n.(ast.NodeValue)
	return ok
}

// operand returns the path of an operand, nil if it has none, and an empty path for a literal.
func operand(n ast.IsNode) []string {
	if isLiteral(n) {
		return []string{}
	}
	return pathOf(n)
}

// longestChunk returns an upper bound of the bytes between two stars of a pattern. Matching such a
// part takes at most that many steps for each byte of the text.
func longestChunk(n ast.NodeTypeLike) int {
	longest := 1
	for part := range bytes.SplitSeq(n.Value.MarshalCedar(), []byte("*")) {
		longest = max(longest, len(part))
	}
	return longest
}

// maxSteps is the maximum number of steps of the operations of a decision: comparisons of bytes or
// values. They take about a second.
const maxSteps = 1 << 30

// tooLarge is the reason to deny a call whose arguments would take more than maxSteps.
const tooLarge = "the arguments are too large for the policies that examine them: divide the call into smaller ones"

// exceeds reports whether the operations of the rules may take more than maxSteps for arguments.
// The largest text and value of all arguments are tried first, because that is fast.
func (e *Engine) exceeds(input map[string]any, longest, heaviest int) bool {
	if e.chunks*longest+e.comparisons*heaviest <= maxSteps {
		return false
	}
	steps := 0
	for _, o := range e.operations {
		for _, path := range o.paths {
			most := max(1, o.chunk) * longest
			if o.chunk == 0 {
				most = heaviest
			}
			switch v, known := argument(input, path); {
			case !known:
			case o.chunk > 0:
				text, _ := v.(string)
				most = o.chunk * len(text)
			default:
				most = weigh(v)
			}
			if steps += most; steps > maxSteps {
				return true
			}
		}
	}
	return false
}

// argument returns the argument at a path of a policy. It returns false if the path is that of
// something else, such as an element of a list.
func argument(input map[string]any, path []string) (v any, known bool) {
	if path == nil {
		return nil, false
	}
	if len(path) < 2 || path[0] != "context" || path[1] != "input" && path[1] != "paths" {
		return nil, len(path) == 0 || path[0] != "context" // a literal, a name or an attribute of a tool
	}
	v = input
	for _, name := range path[2:] {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v, true
}

// The cost of comparing two equal values, in steps.
const (
	weightOfList = 8 // without its items
	textOfStep   = 256
	maxWeight    = 1 << 40 // also that of a list that becomes an Opaque entity
)

// weigh returns how many steps a comparison with the value can take. Cedar compares two sets by
// searching each item of one in the other, and finds an item at once only if no hashes are equal.
func weigh(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/textOfStep
	case map[string]any:
		sum := weightOfList
		for _, member := range v {
			sum += weigh(member)
		}
		return min(sum, maxWeight)
	case []any:
		heaviest := 1
		for _, item := range v {
			heaviest = max(heaviest, weigh(item))
		}
		return weighList(len(v), heaviest)
	}
	return 1
}

func weighList(n, heaviest int) int { return weightOfList + min(n*n*heaviest, maxWeight) }

// maxSetSteps is the maximum number of steps that building the sets of a request may take. Adding an
// item to a set compares it with all items of the same hash, and a caller can choose such items:
// the hash of a list is the sum of those of its items. It permits four lists of maxSet texts.
const maxSetSteps = 1 << 21

// freeSteps is the number of steps of each item that a set may always take: those of short lists.
const freeSteps = 8

// converter turns arguments into Cedar's values. It visits members in their order, so that the same
// arguments always have the same values.
type converter struct {
	left     int // steps for further sets
	longest  int // bytes of the longest text
	heaviest int // weight of the heaviest value
}

// record turns a JSON object into a record. A member that is null is left out:
// for `has` it is absent, as it is for most tools. possible are the values that the schema permits.
func (c *converter) record(object map[string]any, possible abstract) (cedar.Record, int) {
	members, weight := make(cedar.RecordMap, len(object)), weightOfList
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if v := object[name]; v != nil {
			of, _ := possible.member(name)
			member, w := c.value(v, of)
			members[cedar.String(name)] = member
			weight += w
		}
	}
	return cedar.NewRecord(members), min(weight, maxWeight)
}

// set turns a list into a set, or into an Opaque entity if it has too many items, building it would
// take too many steps, or one of its items is such an entity: a rule that searches for an item must
// not find that it is absent.
func (c *converter) set(items []any, possible abstract) (cedar.Value, int) {
	if len(items) > maxSet {
		return opaque("list"), maxWeight
	}
	of := anything()
	if possible.element != nil {
		of = *possible.element
	}
	values, heaviest := make([]cedar.Value, len(items)), 1
	for i, item := range items {
		var w int
		values[i], w = c.value(item, of)
		heaviest = max(heaviest, w)
	}
	steps := len(items) * (len(items) - 1) / 2 * heaviest
	if heaviest >= maxWeight || steps > c.left && steps > freeSteps*len(items) {
		return opaque("list"), maxWeight
	}
	c.left = max(0, c.left-steps)
	return cedar.NewSet(values...), weighList(len(items), heaviest)
}
