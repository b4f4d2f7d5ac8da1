package codegen_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// TestCache changes tools repeatedly: the result with a cache must equal the result
// without one, warnings included.
func TestCache(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"get_doc", "getDoc", "class", "Get-Doc", "___", "list", "ToolError"}
	schemas := []string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object"}`, `true`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.test/x"},"b":{"type":"integer"}}}`,
		wideSchema(400),
	}
	texts := []string{"", "Gets a thing.", "Gets another thing. And more."}
	var cache codegen.Cache
	servers := []catalog.Server{{ID: "one"}, {ID: "two"}, {ID: "Two"}}
	for range 150 {
		server := &servers[random.IntN(len(servers))]
		server.Problem = []string{"", "", "", "it exited"}[random.IntN(4)]
		server.Tools = server.Tools[:len(server.Tools):len(server.Tools)]
		if len(server.Tools) > 0 {
			server.Tools = server.Tools[random.IntN(2):]
		}
		raw := fmt.Sprintf(`{"name":%q,"description":%q,"annotations":{"readOnlyHint":%v},"inputSchema":%s`,
			names[random.IntN(len(names))],
			texts[random.IntN(len(texts))], random.IntN(2) == 0, schemas[random.IntN(len(schemas))])
		if random.IntN(2) == 0 {
			raw += `,"outputSchema":` + schemas[random.IntN(len(schemas))]
		}
		if tool, err := catalog.ParseTool(server.ID, []byte(raw+"}")); err == nil {
			server.Tools = append(server.Tools, tool)
		}
		for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
			got, err := cache.Generate(servers, lang)
			if err != nil {
				t.Fatal(err)
			}
			if want := generate(t, servers, lang); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s with a cache differs: digest %s, want %s, warnings %v, want %v", lang, got.Digest,
					want.Digest, got.Warnings, want.Warnings)
			}
			usages, err := cache.Usages(servers, lang)
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := codegen.Usages(servers, lang); !reflect.DeepEqual(usages, want) {
				t.Fatalf("%s usages are %v, want %v", lang, usages, want)
			}
		}
	}
	if _, err := cache.Generate(servers, "cobol"); err == nil {
		t.Error("got no error for an unknown language")
	}
}

// wideSchema needs more room than a signature has.
func wideSchema(fields int) string {
	text := `{"type":"object","properties":{`
	for i := range fields {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`"field_%d":{"type":"string","description":"The number %d of many fields."}`, i, i)
	}
	return text + "}}"
}
