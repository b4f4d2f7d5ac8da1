package schema

import (
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A check may take baseSteps steps and stepsPerValue more for each value. An honest schema needs a handful per value; a
// hostile one doubles at each of sixty levels.
const (
	baseSteps     = 200_000
	stepsPerValue = 64
)

// The costs of parts of a schema and of a value, in parts of a step.
const (
	step       = 16 // one schema that is applied to one value
	perMember  = 1  // a name that is looked up, or a value that is compared
	perByte    = 4  // of the texts of a value, in addition
	perText    = 64 // so many bytes are copied for one part of a step
	perPattern = 16 // so many instructions of a pattern are tried at one byte for one part of a step
)

// The paths of all values in a value together may have maxPaths bytes, and pathPerValue more for each value, because
// the library copies the path of each value that it checks.
const (
	maxPaths     = 32 << 20
	pathPerValue = 256
)

// budget stops a check that costs too much. The library knows no such limit, but calls its extensions once for each
// schema applied to each value, unless the value has the wrong type. Therefore each schema also pays for the schemas
// that it applies itself.
type budget struct {
	left int // in parts of a step
	// patterns is the size of the largest pattern, and names that of the patterns for the names of one object.
	patterns, names int
}

// priced is a schema with what it costs to apply it to a value, to each byte of a text, and to each byte of the names
// of an object.
type priced struct {
	*budget
	fixed, text, names int
}

var (
	_ jsonschema.ExtCompiler = (*budget)(nil)
	_ jsonschema.ExtSchema   = priced{}
)

type errTooMuchWork struct{}

func (errTooMuchWork) Error() string { return "it would take too much work" }

// start grants the steps for one check of v. It panics if one search for a pattern could cost all of them, because
// searches are paid afterwards.
func (b *budget) start(v any) {
	m := measured{}
	m.add(v, 0)
	b.left = step*(baseSteps+stepsPerValue*m.values) + perByte*m.bytes
	if m.paths > maxPaths+pathPerValue*m.values || searchCost(b.patterns, m.text) > b.left ||
		searchCost(b.names, m.names) > b.left {
		panic(errTooMuchWork{})
	}
}

// measured is the size of a value: of all its values, texts and paths, of its longest text, and of the most names of an
// object.
type measured struct{ values, bytes, paths, text, names int }

func (m *measured) add(v any, path int) {
	m.values++
	m.paths += path
	switch v := v.(type) {
	case string:
		m.bytes += len(v)
		m.text = max(m.text, len(v))
	case []any:
		for _, item := range v {
			m.add(item, path+1)
		}
	case map[string]any:
		names := 0
		for name, member := range v {
			names += len(name) + 1
			m.text = max(m.text, len(name))
			m.add(member, path+len(name)+1)
		}
		m.bytes += names
		m.names = max(m.names, names)
	}
}

// Compile attaches the budget to every schema.
func (b *budget) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	p := priced{budget: b, fixed: step}
	for keyword, value := range schema {
		switch keyword {
		case "examples", "default", "$defs", "definitions":
		case "enum", "const":
			p.fixed += comparison(value)
		case "required":
			p.fixed += comparison(value) + step*members(value)
		case "properties":
			p.fixed += perMember * members(value)
		case "pattern":
			p.text += instructions(value)
			b.patterns = max(b.patterns, p.text)
		case "patternProperties":
			patterns, _ := value.(map[string]any)
			for pattern := range patterns {
				p.names += instructions(pattern)
			}
			b.names = max(b.names, p.names)
		default:
			p.fixed += step * members(value)
		}
	}
	return p, nil
}

// members returns the number of the members or items of a value.
func members(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// comparison returns what it costs to compare a value with v, and to describe v in a problem.
func comparison(v any) int {
	cost := 0
	walk(v, func(v any) {
		cost += perMember
		switch v := v.(type) {
		case string:
			cost += len(v) / perText
		case nil, bool, map[string]any, []any:
		default:
			cost += step // a number is parsed each time
		}
	})
	return cost
}

// instructions returns the size of a compiled pattern: a short one can have thousands.
func instructions(pattern any) int {
	text, _ := pattern.(string)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return len(text)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return len(text)
	}
	return len(program.Inst)
}

// Validate pays for one schema applied to one value: one step, one for each member or item, because the library notes
// which of them were evaluated, and what its keywords cost.
func (p priced) Validate(_ jsonschema.ValidationContext, v any) error {
	p.left -= p.fixed
	switch v := v.(type) {
	case map[string]any:
		p.left -= step * len(v)
		if p.names > 0 {
			names := 0
			for name := range v {
				names += len(name) + 1
			}
			p.left -= searchCost(p.names, names)
		}
	case []any:
		p.left -= step * len(v)
	case string:
		p.left -= searchCost(p.text, len(v))
	}
	if p.left < 0 {
		panic(errTooMuchWork{})
	}
	return nil
}

// searchCost returns what it costs to search a text for a pattern with so many instructions.
func searchCost(pattern, text int) int { return (pattern*text + perPattern - 1) / perPattern }
