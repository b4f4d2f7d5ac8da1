package codegen_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

func TestUsages(t *testing.T) {
	tool, err := catalog.ParseTool("my-crm", []byte(`{"name":"list-contacts","description":"Lists contacts.","inputSchema":{"type":"object","properties":{
		"limit":{"type":"integer"},"status":{"enum":["open","closed"]},"tags":{"type":"array","items":{"type":"string"}},"odd key":{"type":["string","null"]},"filter":{"type":"object"}},
		"required":["tags"]},"outputSchema":{"type":"object","properties":{"contacts":{"type":"array"},"next":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := catalog.ParseTool("my-crm", []byte(`{"name":"ping","inputSchema":{"type":"object","properties":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	servers := []catalog.Server{{ID: "my-crm", Tools: []catalog.Tool{tool, plain}}, {ID: "gone", Problem: "it exited"}}
	tests := []struct {
		language codegen.Language
		name     string
		want     catalog.Usage
	}{
		{codegen.Python, "list-contacts", catalog.Usage{
			Import: "from servers.my_crm import list_contacts",
			Signature: `await list_contacts({tags: list[str], limit?: int, status?: "open"|"closed", "odd key"?: ` +
				`str|None, filter?: {…}}) -> {contacts, next}`,
		}},
		{codegen.Node, "list-contacts", catalog.Usage{
			Import: `import { listContacts } from "./servers/my_crm/index.js";`,
			Signature: `await listContacts({tags: string[], limit?: number, status?: "open"|"closed", "odd key"?: ` +
				`string|null, filter?: {…}}) -> {contacts, next}`,
		}},
		{codegen.Python, "ping", catalog.Usage{Import: "from servers.my_crm import ping", Signature: "await ping()"}},
	}
	for _, test := range tests {
		usages, err := codegen.Usages(servers, test.language)
		if err != nil {
			t.Fatal(err)
		}
		if len(usages) != 2 {
			t.Errorf("got %d tools, want 2", len(usages))
		}
		if got := usages[catalog.ToolRef{ServerID: "my-crm", ToolName: test.name}]; got != test.want {
			t.Errorf("%s %s:\n got %q\nwant %q", test.language, test.name, got, test.want)
		}
	}
	if _, err := codegen.Usages(servers, "cobol"); err == nil {
		t.Error("got no error for an unknown language")
	}
}
