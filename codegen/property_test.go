package codegen_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// hostile draws texts of the kind that ends comments, literals and lines.
func hostile() *rapid.Generator[string] {
	pieces := []string{
		`"`, `"""`, `'`, "'''", "`", `\`, `\\`, "*/", "/*", "//", "#", "\n", "\r", "\t", "\x00", "\x1b", "\u2028",
		"\u2029",
		"\u0085", "\u202e", "\u200b", "\ufeff", "\ufe0f", "\U000e0041", "@", "{@link", "@ts-ignore", "${", "}", "{",
		")", "]", ";",
		"import os", "x", " ", "é", "数", "🧪", "\xff", "\xed\xa0\x80", "__", "1",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
}

// schemas draws schemas of all shapes, with references that lead anywhere.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{}
		if rapid.IntRange(0, 19).Draw(t, "boolean") == 0 {
			return rapid.Bool().Draw(t, "schema")
		}
		keywords := []string{"type", "enum", "const", "description", "default", "$ref", "title", "format", "pattern",
			"minimum"}
		if depth > 0 {
			keywords = append(keywords, "properties", "properties", "items", "prefixItems", "anyOf", "allOf", "oneOf",
				"additionalProperties", "patternProperties", "required", "$defs", "$anchor", "propertyNames")
		}
		for _, keyword := range rapid.SliceOfNDistinct(rapid.SampledFrom(keywords), 0, 4, rapid.ID).Draw(
			t, "keywords") {
			s[keyword] = keywordValue(t, keyword, depth)
		}
		return s
	})
}

func keywordValue(t *rapid.T, keyword string, depth int) any {
	texts := rapid.SliceOfN(hostile(), 0, 4)
	switch keyword {
	case "type":
		kind := rapid.SampledFrom([]string{"object", "object", "array", "string", "integer", "number", "boolean",
			"null", "date"})
		if rapid.Bool().Draw(t, "one") {
			return kind.Draw(t, "type")
		}
		return rapid.SliceOfN(kind, 0, 3).Draw(t, "types")
	case "enum", "required":
		return texts.Draw(t, "texts")
	case "const", "default":
		return rapid.OneOf(rapid.Just[any](nil), hostile().AsAny(), rapid.Int().AsAny(),
			rapid.Float64Range(-9, 9).AsAny(), texts.AsAny()).Draw(t, "value")
	case "$ref":
		return rapid.SampledFrom([]string{"#", "#/$defs/a", "#/properties/a", "#here", "#/items", "http://x/",
			"#/$defs/a/anyOf/0"}).Draw(t, "ref")
	case "$anchor":
		return "here"
	case "minimum":
		return rapid.Int().Draw(t, "minimum")
	case "properties", "$defs", "patternProperties":
		keys := rapid.OneOf(hostile(), rapid.SampledFrom([]string{"a", "b", "from", "class", "str", "__a", "x-y", ""}))
		return rapid.MapOfN(keys, schemas(depth-1), 0, 4).Draw(t, keyword)
	case "prefixItems", "anyOf", "allOf", "oneOf":
		return rapid.SliceOfN(schemas(depth-1), 0, 3).Draw(t, keyword)
	case "items", "additionalProperties", "propertyNames":
		return schemas(depth-1).Draw(t, keyword)
	}
	return hostile().Draw(t, keyword)
}

// servers draws a few servers with tools whose names like to meet.
func servers() *rapid.Generator[[]catalog.Server] {
	parts := rapid.SampledFrom([]string{"get", "Get", "doc", "URL", "3d", "class", "then", "_", "-", ".", "a", "B",
		"index", "init"})
	name := rapid.Custom(
		func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(parts, 0, 4).Draw(t, "parts"), "") })
	tool := rapid.Custom(func(t *rapid.T) catalog.Tool {
		input := marshal(schemas(3).Draw(t, "input"))
		tool := catalog.Tool{
			Name: name.Draw(t, "name"), Title: hostile().Draw(t, "title"),
			Description: hostile().Draw(t, "description"),
			InputSchema: input,
		}
		if rapid.Bool().Draw(t, "has output") {
			tool.OutputSchema = marshal(schemas(2).Draw(t, "output"))
		}
		tool.Raw = marshal([]string{tool.Name, tool.Title, tool.Description, string(tool.InputSchema),
			string(tool.OutputSchema)})
		tool.Digest = canon.Digest(tool.Raw)
		return tool
	})
	server := rapid.Custom(func(t *rapid.T) catalog.Server {
		server := catalog.Server{ID: "s" + hostile().Draw(t, "id"), Tools: rapid.SliceOfN(tool, 0, 4).Draw(t, "tools")}
		if rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
			server.Problem = "p" + hostile().Draw(t, "problem")
		}
		return server
	})
	return rapid.SliceOfNDistinct(server, 0, 3, func(s catalog.Server) string { return s.ID })
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a drawn value is no JSON: %v", err))
	}
	return raw
}

func TestAnyDefinitionsGiveTemplatesOnly(t *testing.T) {
	checkers := startCheckers(t)
	rapid.Check(t, func(r *rapid.T) {
		drawn := servers().Draw(r, "servers")
		for lang, checker := range checkers {
			tree, err := codegen.Generate(drawn, lang)
			if err != nil {
				r.Fatal(err)
			}
			if problem := checker.check(t, tree); problem != "" {
				r.Fatalf("%s: %s", lang, problem)
			}
		}
	})
}

func TestOrderOfInputMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := servers().Draw(t, "servers")
		shuffled := slices.Clone(drawn)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for i := range shuffled {
			tools := slices.Clone(shuffled[i].Tools)
			random.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			shuffled[i].Tools = tools
		}
		for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
			first, err1 := codegen.Generate(drawn, lang)
			second, err2 := codegen.Generate(shuffled, lang)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if first.Digest != second.Digest || !slices.Equal(first.Warnings, second.Warnings) {
				t.Fatalf("%s: got digest %s in one order and %s in another, want one tree", lang, first.Digest,
					second.Digest)
			}
		}
	})
}

func TestEveryToolIsWrappedOrWarnedOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := servers().Draw(t, "servers")
		tree, err := codegen.Generate(drawn, codegen.Python)
		if err != nil {
			t.Fatal(err)
		}
		wrapped := 0
		for _, f := range tree.Files {
			if strings.Contains(f.Path, "/") && !strings.HasSuffix(f.Path, "/__init__.py") {
				wrapped++
			}
		}
		if wrapped != tree.Tools || tree.Servers != len(drawn) {
			t.Fatalf("got %d tools of %d servers, want the %d that have files of %d", tree.Tools, tree.Servers, wrapped,
				len(drawn))
		}
		for _, server := range drawn {
			for _, tool := range server.Tools {
				line := fmt.Sprintf("\nTOOL_NAME = %q\n", tool.Name)
				found := slices.ContainsFunc(tree.Files, func(f codegen.File) bool {
					return strings.Contains(string(f.Data), line) && strings.Contains(string(f.Data), tool.Digest)
				})
				warned := slices.ContainsFunc(tree.Warnings, func(w codegen.Warning) bool {
					return w.ServerID == server.ID && w.Tool == tool.Name
				})
				if !found && !warned && server.Problem == "" {
					t.Fatalf("tool %q of %q: got neither a wrapper nor a warning", tool.Name, server.ID)
				}
			}
		}
	})
}

// TestAnyDefinitionsTypeCheck runs the type checkers over what many drawn
// definitions give, in one tree.
func TestAnyDefinitionsTypeCheck(t *testing.T) {
	var all []catalog.Server
	for seed := range 100 {
		for _, server := range servers().Example(seed) {
			server.ID = fmt.Sprintf("%d %s", seed, server.ID)
			all = append(all, server)
		}
	}
	t.Run("tsc", func(t *testing.T) { checkTypeScript(t, generate(t, all, codegen.Node), "export {};\n") })
	t.Run("pyright", func(t *testing.T) { checkPython(t, generate(t, all, codegen.Python), "") })
}
