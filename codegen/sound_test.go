package codegen_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// plausible draws schemas as servers write them, of which drawArguments knows
// every keyword. References go to three definitions that exist.
func plausible(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		kinds := []string{"string", "integer", "number", "boolean", "enum", "const", "nullable", "table"}
		if depth > 0 {
			kinds = append(kinds, "record", "record", "array", "tuple", "anyOf", "reference", "named keys",
				"open record")
		}
		switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
		case "enum":
			values := rapid.SampledFrom([][]any{{"a", "b c"}, {1, 2, -3}, {"x", nil}, {true, "y", 4}, {1.5, 2},
				{"\"", "\\", "\n"}})
			return map[string]any{"enum": values.Draw(t, "enum")}
		case "const":
			return map[string]any{"const": rapid.SampledFrom([]any{"k", 7, true, nil, 0.5}).Draw(t, "const")}
		case "nullable":
			return map[string]any{"type": []any{rapid.SampledFrom([]string{"string", "integer", "boolean"}).Draw(
				t, "type"), "null"}}
		case "table":
			return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "integer"}}
		case "record":
			return plausibleRecord(depth).Draw(t, "record")
		case "open record":
			s := plausibleRecord(depth).Draw(t, "record")
			s["additionalProperties"] = rapid.SampledFrom([]any{true, map[string]any{"type": "string"}}).Draw(
				t, "others")
			return s
		case "array":
			return map[string]any{"type": "array", "items": plausible(depth-1).Draw(t, "items")}
		case "tuple":
			items := rapid.SliceOfN(plausible(depth-1), 1, 3).Draw(t, "items")
			return map[string]any{"type": "array", "prefixItems": items,
				"minItems": rapid.IntRange(0, len(items)).Draw(t, "least")}
		case "anyOf":
			return map[string]any{"anyOf": rapid.SliceOfN(plausible(depth-1), 1, 3).Draw(t, "parts")}
		case "named keys":
			return map[string]any{"type": "object", "propertyNames": map[string]any{"enum": []any{"p", "q-r"}},
				"additionalProperties": plausible(depth-1).Draw(t, "values")}
		case "reference":
			return map[string]any{"$ref": rapid.SampledFrom(
				[]string{"#/$defs/Node", "#/$defs/Text", "#/$defs/Json"}).Draw(t, "ref")}
		default:
			return map[string]any{"type": kind}
		}
	})
}

func plausibleRecord(depth int) *rapid.Generator[map[string]any] {
	keys := rapid.SampledFrom([]string{"id", "name", "from", "resource-group", "orderBy", "order_by", "class", "list",
		"$and", "1st", "é"})
	return rapid.Custom(func(t *rapid.T) map[string]any {
		properties := rapid.MapOfN(keys, plausible(depth-1), 0, 4).Draw(t, "properties")
		required := []any{}
		for _, key := range sortedKeys(properties) {
			if rapid.Bool().Draw(t, "required") {
				required = append(required, key)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required}
	})
}

// definitions are what references of plausible schemas lead to.
var definitions = map[string]any{
	"Text": map[string]any{"type": "string", "enum": []any{"one", "two"}},
	"Node": map[string]any{"type": "object", "required": []any{"name"}, "properties": map[string]any{
		"name": map[string]any{"type": "string"}, "children": map[string]any{"type": "array",
			"items": map[string]any{"$ref": "#/$defs/Node"}},
	}},
	"Json": map[string]any{"anyOf": []any{
		map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/Json"}},
		map[string]any{"type": "string"}, map[string]any{"type": "null"},
	}},
}

// TestTypesAllowWhatSchemasAllow draws schemas, draws arguments that fit them,
// and has the type checkers accept a call with them.
func TestTypesAllowWhatSchemasAllow(t *testing.T) {
	server := catalog.Server{ID: "drawn"}
	for seed := range 300 {
		schema := plausibleRecord(4).Example(seed)
		schema["$defs"] = definitions
		raw := marshal(schema)
		server.Tools = append(server.Tools, catalog.Tool{
			ServerID: server.ID, Name: fmt.Sprintf("tool_%d", seed), InputSchema: raw, Raw: raw,
			Digest: canon.Digest(raw),
		})
	}
	servers := []catalog.Server{server}
	needs := needArguments(t, servers)
	t.Run("tsc", func(t *testing.T) {
		tree := generate(t, servers, codegen.Node)
		checkTypeScript(t, tree, typeScriptCalls(t, drawCalls(t, servers, tree, codegen.Node), needs))
	})
	t.Run("pyright", func(t *testing.T) {
		tree := generate(t, servers, codegen.Python)
		checkPython(t, tree, pythonCalls(t, drawCalls(t, servers, tree, codegen.Python), needs))
	})
}
