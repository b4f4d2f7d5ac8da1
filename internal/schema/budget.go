package schema

import "github.com/santhosh-tekuri/jsonschema/v5"

// A check may take baseSteps steps and stepsPerValue more for each value. An
// honest schema needs a handful per value; a hostile one doubles at each of
// sixty levels.
const (
	baseSteps     = 200_000
	stepsPerValue = 64
)

// budget stops a check that costs too much. The library knows no such limit,
// but calls its extensions once for each schema applied to each value.
type budget struct {
	left int
}

var (
	_ jsonschema.ExtCompiler = (*budget)(nil)
	_ jsonschema.ExtSchema   = (*budget)(nil)
)

type errTooMuchWork struct{}

func (errTooMuchWork) Error() string { return "it would take too much work" }

// start grants the steps for one check of v.
func (b *budget) start(v any) {
	values := 0
	walk(v, func(any) { values++ })
	b.left = baseSteps + stepsPerValue*values
}

// Compile attaches the budget to every schema.
func (b *budget) Compile(jsonschema.CompilerContext, map[string]any) (jsonschema.ExtSchema, error) {
	return b, nil
}

// Validate pays for one schema applied to one value: one step, and one for
// each member or item, because the library notes which of them were evaluated.
func (b *budget) Validate(_ jsonschema.ValidationContext, v any) error {
	b.left--
	switch v := v.(type) {
	case map[string]any:
		b.left -= len(v)
	case []any:
		b.left -= len(v)
	}
	if b.left < 0 {
		panic(errTooMuchWork{})
	}
	return nil
}
