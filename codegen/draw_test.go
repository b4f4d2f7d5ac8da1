package codegen_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"strconv"
	"strings"
)

// drawer makes arguments that fit a JSON Schema. It reads schemas on its own,
// not through codegen, so that a test with both is worth something.
type drawer struct {
	*rand.Rand
	root  map[string]any
	depth int
	whole bool // every property, also the optional ones
}

// drawArguments returns an argument object that fits the schema.
func drawArguments(schema json.RawMessage, seed uint64, whole bool) map[string]any {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		panic(fmt.Sprintf("a schema of the corpus is not JSON: %v", err))
	}
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 5)), root: root, whole: whole}
	return d.object(root)
}

func (d *drawer) value(schema any) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return "anything"
	}
	d.depth++
	defer func() { d.depth-- }()
	if ref, ok := s["$ref"].(string); ok {
		return d.value(d.resolve(ref))
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if choices, ok := s["enum"].([]any); ok && len(choices) > 0 {
		return choices[d.IntN(len(choices))]
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if parts, ok := s[keyword].([]any); ok {
			return d.value(d.alternative(parts))
		}
	}
	return d.typed(s, d.kind(s))
}

// alternative chooses, and far down the last one: that is where recursion ends.
func (d *drawer) alternative(parts []any) any {
	if d.depth > 6 {
		return parts[len(parts)-1]
	}
	return parts[d.IntN(len(parts))]
}

func (d *drawer) resolve(ref string) any {
	var at any = d.root
	for _, token := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		at = at.(map[string]any)[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return at
}

func (d *drawer) kind(s map[string]any) string {
	switch kind := s["type"].(type) {
	case string:
		return kind
	case []any:
		return kind[d.IntN(len(kind))].(string)
	}
	switch {
	case s["properties"] != nil:
		return "object"
	case s["items"] != nil || s["prefixItems"] != nil:
		return "array"
	}
	return "string"
}

func (d *drawer) typed(s map[string]any, kind string) any {
	switch kind {
	case "null":
		return nil
	case "boolean":
		return d.IntN(2) == 0
	case "integer":
		return math.Round(d.number(s, true))
	case "number":
		return d.number(s, false)
	case "array":
		return d.array(s)
	case "object":
		return d.object(s)
	}
	return d.text(s)
}

func (d *drawer) number(s map[string]any, whole bool) float64 {
	low, hasLow := bound(s, "minimum", "exclusiveMinimum", 1)
	high, hasHigh := bound(s, "maximum", "exclusiveMaximum", -1)
	switch {
	case !hasLow && !hasHigh:
		low, high = -1000, 1000
	case !hasLow:
		low = high - 1000
	case !hasHigh:
		high = low + 1000
	}
	n := low + math.Trunc(d.Float64()*(high-low))
	if step, ok := s["multipleOf"].(float64); ok {
		return math.Ceil(n/step) * step
	}
	if !whole && n+0.5 < high {
		n += 0.5
	}
	return n
}

// bound reads a limit of a number; exclusive ones are moved inside by one, or
// in draft-04 are booleans beside the limit.
func bound(s map[string]any, inclusive, exclusive string, inside float64) (float64, bool) {
	if limit, ok := s[exclusive].(float64); ok {
		return limit + inside, true
	}
	limit, ok := s[inclusive].(float64)
	if s[exclusive] == true {
		limit += inside
	}
	return limit, ok
}

func (d *drawer) array(s map[string]any) []any {
	out := []any{}
	prefix, _ := s["prefixItems"].([]any)
	items := s["items"]
	if list, ok := items.([]any); ok {
		prefix, items = list, s["additionalItems"]
	}
	least, hasLeast := s["minItems"].(float64)
	if !d.whole {
		prefix = prefix[:min(int(least), len(prefix))] // the rest may be left out
	}
	for _, item := range prefix {
		out = append(out, d.value(item))
	}
	count := int(least)
	if !hasLeast && d.depth < 8 {
		count = d.IntN(3)
	}
	if most, ok := s["maxItems"].(float64); ok {
		count = min(count, int(most))
	}
	if s["prefixItems"] != nil && items == nil {
		return out
	}
	for len(out) < count && items != false {
		out = append(out, d.value(items))
	}
	return out
}

func (d *drawer) object(s map[string]any) map[string]any {
	out := map[string]any{}
	required := map[string]bool{}
	if list, ok := s["required"].([]any); ok {
		for _, key := range list {
			required[key.(string)] = true
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, key := range sortedKeys(properties) {
		if required[key] || d.depth < 8 && (d.whole || d.IntN(2) == 0) {
			out[key] = d.value(properties[key])
		}
	}
	dependent, _ := s["dependentRequired"].(map[string]any)
	for _, key := range sortedKeys(dependent) {
		if _, given := out[key]; given {
			for _, needed := range dependent[key].([]any) {
				out[needed.(string)] = d.value(properties[needed.(string)])
			}
		}
	}
	if names, ok := s["propertyNames"].(map[string]any); ok && len(properties) == 0 {
		out[fmt.Sprint(d.value(names))] = d.value(s["additionalProperties"])
	} else if others, ok := s["additionalProperties"].(map[string]any); ok && len(properties) == 0 {
		out["a key"] = d.value(others)
	}
	return out
}

// awkward are texts that transports and escapes like to break.
var awkward = []string{
	"plain", "", "'\"`\\", "line\nbreak\r\n\t", "\u2028\u2029\u0085", "naïve 数据 🧪", "\u202Eabc\u202C",
	"\u0000\u001f\u007f",
	"${x} {{x}} %s %(x)s", "*/ // # \"\"\" '''", "null", "1e400", "__proto__", "\uFEFFbom",
}

func (d *drawer) text(s map[string]any) string {
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return d.matching(re.Simplify())
		}
	}
	switch s["format"] {
	case "uri", "url":
		return "https://example.com/a?b=" + strconv.Itoa(d.IntN(100))
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "date":
		return "2026-01-02"
	case "email":
		return "someone@example.com"
	case "uuid":
		return "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	}
	text := awkward[d.IntN(len(awkward))]
	if least, ok := s["minLength"].(float64); ok && len([]rune(text)) < int(least) {
		text += strings.Repeat("x", int(least))
	}
	if most, ok := s["maxLength"].(float64); ok && len([]rune(text)) > int(most) {
		text = string([]rune(text)[:int(most)])
	}
	return text
}

// matching returns a text that a regular expression matches.
func (d *drawer) matching(re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		pair := 2 * d.IntN(len(re.Rune)/2)
		b.WriteRune(re.Rune[pair])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpAlternate:
		b.WriteString(d.matching(re.Sub[d.IntN(len(re.Sub))]))
	case syntax.OpPlus, syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			b.WriteString(d.matching(sub))
		}
	}
	return b.String()
}
