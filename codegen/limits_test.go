package codegen_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// maxFile is the maximum size of one tool's file. Description and signature are cut long
// before it is reached.
const maxFile = 16 << 10

// repeat joins n texts.
func repeat(n int, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, ",")
}

// object is a schema with one property.
func object(schema string) string { return `{"type":"object","properties":{"p":` + schema + `}}` }

// TestHugeDefinitionsGiveSmallFiles takes definitions that are large, or small
// and large once they are spelled out.
func TestHugeDefinitionsGiveSmallFiles(t *testing.T) {
	doubling := func(keyword string, join func(ref string) string) string {
		return `{"type":"object","properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{` + repeat(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{%s}`, i, keyword+join(fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)))
		}) + `,"d40":{"type":"string"}}}`
	}
	for name, schema := range map[string]string{
		"many properties": `{"type":"object","properties":{` +
			repeat(30_000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`,
		"many required": `{"type":"object","required":[` +
			repeat(30_000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"many values": object(`{"enum":[` + repeat(
			100_000, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}`),
		"many alternatives": object(`{"anyOf":[` +
			repeat(10_000, func(i int) string { return object(fmt.Sprintf(`{"const":%d}`, i)) }) + `]}`),
		"alternatives of all": object(`{"allOf":[` + repeat(100, func(i int) string {
			return `{"anyOf":[` + repeat(100, func(j int) string { return object(fmt.Sprintf(`{"const":%d}`, i*j)) }) +
				`]}`
		}) + `]}`),
		"a long key":     `{"type":"object","properties":{"` + strings.Repeat("k", 1<<20) + `":{"type":"string"}}}`,
		"a long value":   object(`{"const":"` + strings.Repeat("v", 1<<20) + `"}`),
		"a long default": object(`{"default":"` + strings.Repeat("v", 1<<20) + `"}`),
		"a long number":  object(`{"const":` + strings.Repeat("9", 1<<20) + `}`),
		"a long pattern": object(`{"type":"string","pattern":"` + strings.Repeat("(a|", 1<<18) + `"}`),
		"deep nesting":   strings.Repeat(`{"items":`, 9_000) + "{}" + strings.Repeat("}", 9_000),
		"deep records":   strings.Repeat(`{"properties":{"a":`, 90) + "{}" + strings.Repeat("}}", 90),
		"doubling tuples": doubling(`"type":"array","prefixItems":[`,
			func(ref string) string { return ref + "," + ref + "]" }),
		"doubling merged tuples": doubling(`"type":"array","prefixItems":[`, func(ref string) string {
			part := `{"allOf":[` + ref + `,{"type":["array","string"]}]}`
			return part + "," + part + "]"
		}),
		"doubling records": doubling(`"type":"object","properties":{`,
			func(ref string) string { return `"a":` + ref + `,"b":{"allOf":[` + ref + `,{"required":["q"]}]}}` }),
		"doubling tuples that are alike": `{"type":"object",` +
			`"properties":{"p":{"anyOf":[{"allOf":[{"$ref":"#/$defs/a0"},{"type":["array","string"]}]},` +
			`{"allOf":[{"$ref":"#/$defs/b0"},{"type":["array","string"]}]}]}},"$defs":{` +
			repeat(40, func(i int) string {
				part := `{"allOf":[{"$ref":"#/$defs/%[1]s%[2]d"},{"type":["array","string"]}]}`
				tuple := `"%[1]s%[3]d":{"allOf":[{"type":"array","prefixItems":[` + part + "," + part +
					`]},{"minItems":1,"type":["array","null"]}]}`
				return fmt.Sprintf(tuple+","+strings.ReplaceAll(tuple, "%[1]s", "b"), "a", i+1, i)
			}) + `,"a40":{"type":"string"},"b40":{"type":"string"}}}`,
		"doubling unions": doubling(`"anyOf":[`, func(ref string) string {
			return ref + `,{"type":"array","items":` +
				ref + `}]`
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(schema)) {
				t.Fatal("the test's schema is no JSON")
			}
			tool := catalog.Tool{Name: "huge", InputSchema: []byte(schema), OutputSchema: []byte(schema),
				Digest: "sha256:" + strings.Repeat("0", 64)}
			for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
				for _, f := range generate(t, []catalog.Server{{ID: "s", Tools: []catalog.Tool{tool}}}, lang).Files {
					if strings.Contains(f.Path, "/huge") && len(f.Data) > maxFile {
						t.Errorf("%s: got %d bytes, want at most %d", f.Path, len(f.Data), maxFile)
					}
				}
			}
		})
	}
}

func TestHugeTextsAreCutWithAPointer(t *testing.T) {
	const pointers = `client.catalog.get_tool_definition("s", "talk") catalog.getToolDefinition({ serverId: "s", ` +
		`name: "talk" })`
	for name, piece := range map[string]string{"words": "word ", "hidden characters": "\u200b", "lines": "\n\nx",
		"quotation marks": `"""`, "one word": "x"} {
		tool := catalog.Tool{Name: "talk", Title: strings.Repeat(piece, 1<<18),
			Description: "It talks. " + strings.Repeat(piece, 1<<18), InputSchema: []byte(`{}`)}
		for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
			tree := generate(t, []catalog.Server{{ID: "s", Tools: []catalog.Tool{tool}}}, lang)
			found := false
			for _, f := range tree.Files {
				text := string(f.Data)
				if len(f.Data) > maxFile {
					t.Errorf("%s of %s: got %d bytes, want at most %d", f.Path, name, len(f.Data), maxFile)
				}
				for line := range strings.Lines(text) {
					at := strings.Index(line, "atalog.get")
					found = found || at >= 0 && strings.Contains(pointers, strings.TrimSpace(line[at:])) &&
						strings.Contains(text, "It talks.")
				}
			}
			if !found {
				t.Errorf("%s in %s: got no pointer to the catalog beside the beginning of the text", name, lang)
			}
		}
	}
}
