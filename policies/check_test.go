package policies_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cedarschema "github.com/cedar-policy/cedar-go/x/exp/schema"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
)

func servers() []catalog.Server {
	return []catalog.Server{
		{ID: "files", Tools: []catalog.Tool{
			{ServerID: "files", Name: "read_file",
				InputSchema: json.RawMessage(
					`{"type":"object","properties":{"path":{"type":"string"},"range":{"type":"object",` +
						`"properties":{"from":{"type":"integer"}}}}}`)},
			{ServerID: "files", Name: "delete_file",
				InputSchema: json.RawMessage(
					`{"type":"object","properties":{"path":{"type":"string"},"force":{"type":"boolean"}}}`)},
			{ServerID: "files", Name: "anything", InputSchema: json.RawMessage(`{"type":"object"}`)},
		}},
		{ID: "mail", Problem: "it does not start"},
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name, source string
		want         string // empty: no problem
	}{
		{"a rule about everything", `permit (principal, action, resource);`, ""},
		{"a rule about a tool",
			`permit (principal, action == Action::"files/read_file", resource) when { context.paths has path && ` +
				`context.paths.path like "/srv/*" };`, ""},
		{"a pattern for a directory", "permit (principal, action == Action::\"files/read_file\", resource)\nwhen " +
			"{ context.input has path && context.input.path like \"/srv/*\" };",
			"p.cedar:2: warning: context.input.path like \"/srv/*\" also matches paths with `..`; write " +
				"context.paths.path"},
		{"a pattern that is not for a directory",
			`permit (principal, action == Action::"files/read_file", resource) when { context.input has path && ` +
				`context.input.path like "*.md" };`, ""},
		{"a misspelt tool", "permit (principal,\n  action == Action::\"files/reed_file\",\n  resource);",
			`p.cedar:2: there is no tool "files/reed_file"; did you mean "files/read_file"?`},
		{"a misspelt server", `permit (principal, action, resource in Server::"fils");`,
			`there is no server "fils"; did you mean "files"?`},
		{"a misspelt type", `permit (principal is Usr, action, resource);`,
			`there is no entity type Usr; did you mean "User"?`},
		{"a tool in a condition",
			`permit (principal, action, resource) when { resource == Tool::"files/nope_at_all" };`,
			`there is no tool "files/nope_at_all"`},
		{"a tool of a server that is missing", `permit (principal, action == Action::"mail/send", resource);`, ""},
		{"the group of all tools, misspelt", `permit (principal, action in Action::"cal", resource);`,
			`did you mean "call"?`},
		{"a misspelt attribute", "permit (principal, action, resource)\nwhen { true &&\nresource.rsk == \"read\" };",
			`p.cedar:3: there is no resource.rsk; did you mean "risk"?`},
		{"a misspelt claim", `permit (principal, action, resource) when { resource.claims.readonly };`,
			`did you mean "readOnly"?`},
		{"a misspelt fact", `permit (principal, action, resource) when { context.session.call > 3 };`,
			`there is no context.session.call; did you mean "calls"?`},
		{"an unknown attribute", `permit (principal, action, resource) when { principal.role == "admin" };`,
			`there is no principal.role; principal has name, groups, claims`},
		{"the context without input", `permit (principal, action, resource) when { context.arguments.path == "x" };`,
			`there is no context.arguments; context has input, paths, session, elicits`},
		{"the group of all tools as an action", `permit (principal, action == Action::"call", resource);`,
			`Action::"call" is the group of all calls; write action in Action::"call"`},
		{"a misspelt argument",
			`forbid (principal, action == Action::"files/delete_file", resource) when { context.input.forse };`,
			`no tool that this policy can match has the argument forse; did you mean "force"?`},
		{"a misspelt argument after has",
			`forbid (principal, action == Action::"files/delete_file", resource) when { context.input has pth };`,
			`argument pth; did you mean "path"?`},
		{"an argument deeper down",
			`forbid (principal, action == Action::"files/read_file", resource) when { context.input.range.form > 3 };`,
			`argument range.form; did you mean "from"?`},
		{"an argument of another tool",
			`forbid (principal, action == Action::"files/read_file", resource) when { context.input.force };`,
			`has the argument force`},
		{"an argument that some matching tool may have",
			`forbid (principal, action, resource) when { context.input has whatever };`, ""},
		{"a misspelt argument in a rule about all tools",
			`forbid (principal, action, resource) when { context.input has pth && context.input.pth like "/etc/*" };`,
			`argument pth; did you mean "path"?`},
		{"a misspelt argument in a rule about a server",
			`forbid (principal, action in Action::"call", resource in Server::"files") when { context.input has ` +
				`forse };`, `argument forse; did you mean "force"?`},
		{"a misspelt risk", `forbid (principal, action, resource) when { resource.risk == "reed" };`,
			`resource.risk is never "reed"; did you mean "read"?`},
		{"a misspelt server in a comparison",
			`forbid (principal, action, resource) when { "fils" == resource.server };`,
			`resource.server is never "fils"; did you mean "files"?`},
		{"a misspelt server among those read",
			`forbid (principal, action, resource) when { context.session.servers.contains("fils") };`,
			`context.session.servers is never "fils"; did you mean "files"?`},
		{"servers and risks that there are",
			`forbid (principal, action, resource) when { resource.risk != "unknown" && resource.server == "mail" && ` +
				`context.session.servers.contains("files") };`, ""},
		{"an unknown obligation", `@aprove("owner") permit (principal, action, resource);`,
			`there is no obligation @aprove, so this policy can only deny; did you mean "approve"?`},
		{"an unknown approver", `@approve("ownr") permit (principal, action, resource);`,
			`there is no approver "ownr" in @approve; did you mean "owner"?`},
		{"a text compared like a number",
			`forbid (principal, action == Action::"files/read_file", resource) when { context.input has path && ` +
				`context.input.path > 3 };`, "can fail to evaluate, which denies the call"},
		{"an argument that may be missing",
			`forbid (principal, action == Action::"files/read_file", resource) when { context.input.path like ` +
				`"/etc/*" };`, "can fail to evaluate, which denies the call"},
		{"the same, tested for",
			`forbid (principal, action == Action::"files/read_file", resource) when { context.paths has path && ` +
				`context.paths.path like "/etc/*" };`, ""},
		{"an attribute of the wrong type", `permit (principal, action, resource) when { resource.risk > 3 };`,
			"fails to evaluate for every call, so every call is denied: resource.risk is a text"},
		{"bad syntax", "permit (principal, action, resource)\nwhen { resource. };", `p.cedar`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var said []string
			for _, p := range policies.Check([]policies.File{{Name: "p.cedar", Source: []byte(test.source)}},
				servers()) {
				said = append(said, p.String())
			}
			if all := strings.Join(said, "\n"); (test.want == "") != (all == "") || !strings.Contains(all, test.want) {
				t.Errorf("got %q, want %q", all, test.want)
			}
		})
	}
}

// The real tool lists give a schema that Cedar itself reads.
func TestCedarSchema(t *testing.T) {
	for _, list := range [][]catalog.Server{servers(), corpus(t)} {
		var s cedarschema.Schema
		text := policies.CedarSchema(list)
		if err := s.UnmarshalCedar(text); err != nil {
			t.Fatalf("%v in\n%.2000s", err, text)
		}
		if _, err := s.Resolve(); err != nil {
			t.Fatal(err)
		}
	}
	text := string(policies.CedarSchema(servers()))
	if want := `context: {"input": {"path"?: String, "range"?: {"from"?: Long}}, "paths": {"path"?: String, ` +
		`"range"?: {"from"?: Long}}, "session": Session, "elicits": Bool}`; !strings.Contains(text, want) {
		t.Errorf("got %s, want %s in it", text, want)
	}
}

// corpus returns the servers of the corpus of real tool lists.
func corpus(t testing.TB) []catalog.Server {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "tools", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tool lists in the corpus: %v", err)
	}
	var list []catalog.Server
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		server := catalog.Server{ID: strings.TrimSuffix(filepath.Base(path), ".json")}
		for _, raw := range file.Tools {
			tool := catalog.Tool{ServerID: server.ID, Raw: raw}
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			server.Tools = append(server.Tools, tool)
		}
		list = append(list, server)
	}
	return list
}

func BenchmarkCheck(b *testing.B) {
	list := corpus(b)
	for b.Loop() {
		if problems := policies.Check([]policies.File{policies.Default()}, list); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func TestCheckOperator(t *testing.T) {
	operator := policies.Operator{
		"files": {Allow: []string{"*", "reed_file"}, Deny: []string{"delete_file"},
			Risks: map[string]policies.Risk{"delet_file": policies.RiskLow}},
		"mail": {Allow: []string{"anything"}},
	}
	var said []string
	for _, p := range policies.CheckOperator(operator, servers()) {
		said = append(said, p.String())
	}
	want := `servers.files.allow: the server has no tool "reed_file"; did you mean "read_file"?
servers.files.tools: the server has no tool "delet_file"; did you mean "delete_file"?`
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The shipped policies have no mistakes, and their decisions equal those in their cases.
func TestShippedPolicies(t *testing.T) {
	sources := map[string]policies.File{"default": policies.Default()}
	examples, err := filepath.Glob(filepath.Join("examples", "*.cedar"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".cedar")
		sources[name] = policies.File{Name: path, Source: source}
	}
	for name, file := range sources {
		t.Run(name, func(t *testing.T) {
			if problems := policies.Check([]policies.File{file}, servers()); len(problems) != 0 {
				t.Errorf("problems: %v", problems)
			}
			path := filepath.Join("testdata", "cases", name+".yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cases, err := policies.ParseCases(path, text)
			if err != nil {
				t.Fatal(err)
			}
			engine, err := policies.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if _, err := c.Run(engine, catalog.Tool{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestCasesThatAreWrong(t *testing.T) {
	engine, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, source, want string }{
		{"no cases", `cases: []`, "no cases"},
		{"nothing", ``, "no cases"},
		{"a misspelt key", "cases:\n  - {nme: x}",
			`case file "c.yaml": line 2: there is no key "nme"; did you mean "name"?`},
		{"a text in the place of a list", `cases: x`, "case file \"c.yaml\": line 1: a str `x` does not belong here"},
		{"a list in the place of a text", `cases: [{name: [x], server: a, tool: b}]`,
			`line 1: a seq does not belong here`},
		{"no YAML", "cases: [", `case file "c.yaml": `},
		{"a misspelt word", `cases: [{name: x, server: a, tool: b, expect: alow}]`, `did you mean "allow"?`},
		{"a case without a tool", `cases: [{name: x, server: a, expect: deny}]`, "needs name, server and tool"},
		{"another decision", `cases: [{name: x, server: a, tool: b, expect: allow}]`,
			`case "x": got ask, want allow (default.ask)`},
		{"another rule", `cases: [{name: x, server: a, tool: b, expect: ask, by: [other]}]`,
			`decided by ["default.ask"], want ["other"]`},
		{"an unknown risk", `cases: [{name: x, server: a, tool: b, settings: {risk: low}, expect: ask}]`, `risk "low"`},
		{"an input that is not an object", `cases: [{name: x, server: a, tool: b, input: [1], expect: ask}]`,
			"not a JSON object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cases, err := policies.ParseCases("c.yaml", []byte(test.source))
			if err == nil {
				_, err = cases[0].Run(engine, catalog.Tool{})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	engine, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	req := policies.Request{Tool: tool(catalog.Annotations{ReadOnlyHint: yes()}),
		Settings: policies.Settings{Denied: true}}
	var out bytes.Buffer
	if err := policies.Explain(&out, req, engine.Decide(req), ""); err != nil {
		t.Fatal(err)
	}
	want := `files/delete_file: refused
  risk unknown: the tool claims to be read-only, but its server's claims are not trusted
  forbid default.denied (default.cedar:12)
  because policy default.denied (default.cedar:12) forbids it: the operator denies this tool (servers.<id>.deny)
`
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

func FuzzCases(f *testing.F) {
	f.Add([]byte(`cases: [{name: x, server: a, tool: b, input: {n: 1e400, d: 2026-01-01}, expect: ask}]`))
	engine, err := policies.Load(policies.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		cases, err := policies.ParseCases("c.yaml", source)
		if err != nil {
			return
		}
		for _, c := range cases {
			c.Run(engine, catalog.Tool{})
		}
	})
}
