package codegen

import (
	"strconv"
	"strings"
)

const maxFact = 60 // bytes of a default, pattern or example

// fieldProse returns the documentation of a field on one line: its description in at most
// limit bytes, then default, bounds and format. It may be empty.
func fieldProse(f field, limit int) string {
	if f.schema == nil || f.schema.kind != isObject {
		return ""
	}
	var parts []string
	if limit > 0 {
		description := f.schema.str("description")
		if description == "" {
			description = f.schema.str("title")
		}
		if line := oneLine(description, limit); line != "" {
			parts = append(parts, endSentence(line))
		}
	}
	return strings.Join(append(parts, facts(f.schema)...), " ")
}

// endSentence adds a full stop if the line does not end with punctuation.
func endSentence(line string) string {
	if strings.HasSuffix(line, ".") || strings.HasSuffix(line, "…") || strings.HasSuffix(line, "!") ||
		strings.HasSuffix(line, "?") || strings.HasSuffix(line, ":") {
		return line
	}
	return line + "."
}

// facts lists constraints of the schema that a type cannot express, one sentence each.
func facts(s *value) []string {
	var out []string
	if v := s.get("deprecated"); v != nil && v.kind == isBool && v.truth {
		out = append(out, "Deprecated.")
	}
	if v := s.get("default"); v != nil {
		out = append(out, "Default: "+compact(v)+".")
	}
	if format := s.str("format"); format != "" {
		out = append(out, "Format: "+oneLine(format, maxFact)+".")
	}
	if pattern := s.str("pattern"); pattern != "" {
		out = append(out, "Pattern: "+oneLine(pattern, maxFact)+".")
	}
	out = append(out, bounds(s, "minimum", "maximum", "")...)
	out = append(out, bounds(s, "minLength", "maxLength", " characters")...)
	out = append(out, bounds(s, "minItems", "maxItems", " items")...)
	return out
}

// bounds words a pair of limits: "1 to 100", "At least 1 items", with the
// exclusive form of numbers (a number since draft-06, a boolean in draft-04).
func bounds(s *value, least, most, unit string) []string {
	low, high := numeral(s.get(least)), numeral(s.get(most))
	var out []string
	switch {
	case low != "" && high != "":
		out = append(out, low+" to "+high+unit+".")
	case low != "":
		out = append(out, "At least "+low+unit+".")
	case high != "":
		out = append(out, "At most "+high+unit+".")
	}
	if unit != "" {
		return out
	}
	if above := numeral(s.get("exclusiveMinimum")); above != "" {
		out = append(out, "More than "+above+".")
	}
	if below := numeral(s.get("exclusiveMaximum")); below != "" {
		out = append(out, "Less than "+below+".")
	}
	return out
}

// numeral returns a number as written, or "" if v is not a number or is too long.
func numeral(v *value) string {
	if v == nil || v.kind != isNumber || len(v.text) > maxFact {
		return ""
	}
	return v.text
}

// compact writes a value as JSON of at most about maxFact bytes; what is
// longer ends in "…".
func compact(v *value) string {
	return oneLine(string(appendCompact(nil, v)), maxFact)
}

func appendCompact(b []byte, v *value) []byte {
	if len(b) > 2*maxFact {
		return b // oneLine cuts it anyway
	}
	switch v.kind {
	case isNull:
		return append(b, "null"...)
	case isBool:
		return strconv.AppendBool(b, v.truth)
	case isNumber:
		return append(b, v.text[:min(len(v.text), 2*maxFact)]...)
	case isString:
		return literal(b, v.text[:min(len(v.text), 2*maxFact)], nodeAstral)
	case isArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendCompact(b, item)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(literal(b, m.key[:min(len(m.key), maxFact)], nodeAstral), ": "...)
			b = appendCompact(b, m.value)
		}
		return append(b, '}')
	}
}
