package catalog_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/catalog"
)

// tool builds a tool whose definition has a description and one parameter.
func tool(t testing.TB, server, name, description string) catalog.Tool {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"name": name, "description": description,
		"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{"path": map[string]string{"type": "string"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := catalog.ParseTool(server, raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func snapshot(t testing.TB, servers ...catalog.Server) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.NewSnapshot(servers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotRefuses(t *testing.T) {
	a := tool(t, "s", "a", "")
	tests := []struct {
		name    string
		servers []catalog.Server
		want    string
	}{
		{"a server without ID", []catalog.Server{{}}, "a server has no ID"},
		{"one ID twice", []catalog.Server{{ID: "s"}, {ID: "s"}}, `two servers have the ID "s"`},
		{"one tool twice", []catalog.Server{{ID: "s", Tools: []catalog.Tool{a, a}}},
			`server "s" has two tools named "a"`},
		{"a tool of another server", []catalog.Server{{ID: "t", Tools: []catalog.Tool{a}}}, `says it belongs to "s"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := catalog.NewSnapshot(test.servers)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

func TestSnapshotIgnoresOrder(t *testing.T) {
	want := corpus(t)
	servers := slices.Clone(want.Servers())
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		for i := range servers {
			servers[i].Tools = slices.Clone(servers[i].Tools)
			random.Shuffle(len(servers[i].Tools), func(a, b int) {
				servers[i].Tools[a], servers[i].Tools[b] = servers[i].Tools[b], servers[i].Tools[a]
			})
		}
		got := snapshot(t, servers...)
		if got.Digest() != want.Digest() {
			t.Fatalf("got digest %s, want %s", got.Digest(), want.Digest())
		}
		for _, text := range []string{"", "create an issue", "list pods", "screenshot"} {
			q := catalog.Query{Text: text, Limit: catalog.MaxLimit}
			if diff := cmp.Diff(want.Search(q), got.Search(q)); diff != "" {
				t.Errorf("search %q differs (-want +got):\n%s", text, diff)
			}
		}
	}
}

func TestSnapshotIsNotTouchedByItsMaker(t *testing.T) {
	tools := []catalog.Tool{tool(t, "s", "b", ""), tool(t, "s", "a", "")}
	s := snapshot(t, catalog.Server{ID: "s", Tools: tools})
	if tools[0].Name != "b" {
		t.Errorf("got the caller's tools sorted, want them as they were")
	}
	tools[1].Name = "changed"
	if _, ok := s.Tool("s", "a"); !ok {
		t.Errorf("got no tool a after the caller changed its own slice")
	}
}

func TestDigestCovers(t *testing.T) {
	base := func() []catalog.Server {
		return []catalog.Server{{ID: "s", Tools: []catalog.Tool{tool(t, "s", "a", "x")}}, {ID: "t"}}
	}
	changes := []struct {
		name   string
		change func([]catalog.Server)
	}{
		{"a definition", func(s []catalog.Server) { s[0].Tools[0] = tool(t, "s", "a", "y") }},
		{"a tool more", func(s []catalog.Server) { s[1].Tools = []catalog.Tool{tool(t, "t", "b", "")} }},
		{"a server's ID", func(s []catalog.Server) { s[1].ID = "u" }},
		{"a server's problem", func(s []catalog.Server) { s[1].Problem = "did not answer within 10s" }},
	}
	before := snapshot(t, base()...).Digest()
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			servers := base()
			change.change(servers)
			if got := snapshot(t, servers...).Digest(); got == before {
				t.Errorf("got the digest unchanged: %s", got)
			}
		})
	}
}

func TestLookupSaysWhatWasMeant(t *testing.T) {
	s := snapshot(t,
		catalog.Server{ID: "files", Tools: []catalog.Tool{tool(t, "files", "read_file", ""),
			tool(t, "files", "read_media_file", ""), tool(t, "files", "write_file", "")}},
		catalog.Server{ID: "crm", Problem: "the command \"crmd\" was not found"})
	tests := []struct{ name, server, tool, want string }{
		{"another spelling", "files", "readFile", `server "files" has no tool "readFile"; did you mean "read_file"?`},
		{"two letters swapped", "files", "raed_file",
			`server "files" has no tool "raed_file"; did you mean "read_file"?`},
		{"nothing near", "files", "launch_rocket", `server "files" has no tool "launch_rocket"`},
		{"another server", "file", "read_file", `no server is called "file"; did you mean "files"?`},
		{"a tool's name for a server's", "readFile", "files",
			`no server is called "readFile"; it is a tool of server "files"`},
		{"a missing server", "crm", "list", `server "crm" is missing: the command "crmd" was not found`},
		{"hostile names", "files", "a\x1b[2J", `server "files" has no tool "a\x1b[2J"`},
		{"a very long name", "files", strings.Repeat("x", 100000),
			`server "files" has no tool "` + strings.Repeat("x", 80) + `..."`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Lookup(test.server, test.tool)
			var unknown *catalog.UnknownError
			if !errors.As(err, &unknown) || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if got, err := s.Lookup("files", "read_file"); err != nil || got.Name != "read_file" {
		t.Errorf("got %q, %v, want read_file", got.Name, err)
	}
}
