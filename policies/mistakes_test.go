package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// shop is a catalog with typed tools, an untyped one, and a server that is missing.
func shop() []catalog.Server {
	tool := func(server, name, schema string) catalog.Tool {
		return catalog.Tool{ServerID: server, Name: name, InputSchema: json.RawMessage(schema)}
	}
	return []catalog.Server{
		{ID: "files", Tools: []catalog.Tool{
			tool("files", "read_file",
				`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},`+
					`"range":{"type":"object","properties":{"from":{"type":"integer"}}}},"required":["path"]}`),
			tool("files", "delete_file",
				`{"type":"object","properties":{"path":{"type":"string"},"force":{"type":"boolean"},`+
					`"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`),
			tool("files", "anything", `{"type":"object"}`),
		}},
		{ID: "crm", Tools: []catalog.Tool{
			tool("crm", "find", `{"type":"object","properties":{"mode":{"enum":["fast","slow"]},`+
				`"score":{"type":"number"},"owner":{"type":["string","null"]},"id":{"anyOf":[{"type":"string"},`+
				`{"type":"integer"}]}},"required":["mode","owner"]}`),
			tool("crm", "export",
				`{"type":"object","properties":{"target":{"$ref":"#/$defs/target"}},"required":["target"],`+
					`"$defs":{"target":{"type":"object","properties":{"host":{"type":"string"},`+
					`"port":{"type":"integer"}},"required":["host"]}}}`),
		}},
		{ID: "mail", Problem: "it does not start"},
	}
}

const (
	forbidAll    = `forbid (principal, action, resource) when { %s };`
	forbidRead   = `forbid (principal, action == Action::"files/read_file", resource) when { %s };`
	forbidDelete = `forbid (principal, action == Action::"files/delete_file", resource) when { %s };`
	forbidFiles  = `forbid (principal, action, resource in Server::"files") when { %s };`
	forbidFind   = `forbid (principal, action == Action::"crm/find", resource) when { %s };`
	forbidExport = `forbid (principal, action == Action::"crm/export", resource) when { %s };`
	asItIs       = `%s`
)

// A rule that cannot match, or that errs, is named: it would silently do nothing,
// or deny everything.
func TestMistakesAreNamed(t *testing.T) {
	tests := []struct{ form, condition, want string }{
		// names that are unknown
		{forbidAll, `resource.rsk == "read"`, "there is no resource.rsk"},
		{forbidAll, `resource has rsk`, "there is no resource.rsk"},
		{forbidAll, `resource.claims.readonly`, "there is no resource.claims.readonly"},
		{forbidAll, `context.sesion.calls > 3`, "there is no context.sesion"},
		{forbidAll, `context.session.callz > 3`, "there is no context.session.callz"},
		{forbidAll, `principal.role == "admin"`, "there is no principal.role"},
		{forbidAll, `principal is Admin`, "no entity type Admin"},
		{forbidAll, `resource in Server::"fils"`, "there is no server"},
		{forbidAll, `[Server::"files", Server::"fils"].contains(Server::"files") && resource in [Server::"files", ` +
			`Server::"fils"]`, "there is no server"},
		{forbidAll, `resource == Tool::"files/reed_file"`, "there is no tool"},
		{forbidAll, `action == Action::"files/reed_file"`, "there is no tool"},
		{forbidAll, `resource.name == "reed_file" && resource.server == "files"`, "never match"},
		{forbidFiles, `resource.name == "reed_file"`, `resource.name is never "reed_file"`},
		{forbidFiles, `resource.name like "reed_*"`, "resource.name is like that never"},
		{forbidFiles, `["reed_file", "wirte_file"].contains(resource.name)`, "never has"},
		{forbidAll, `context.session.servers.contains("fils")`, `never "fils"`},
		{forbidAll, `resource.server == "fils"`, `never "fils"`},
		{forbidAll, `resource.risk == "wirte"`, `never "wirte"`},
		{forbidAll, `["wirte", "distructive"].contains(resource.risk)`, "never has"},
		{forbidAll, `resource.risk like "w?ite"`, "is like that never"},
		{forbidRead, `context.input.pth like "/etc/*"`, "argument pth"},
		{forbidRead, `context.input.range.form > 3`, "argument range.form"},
		{forbidFind, `context.input.mode == "quick"`, "context.input.mode is never"},
		{forbidFind, `context.input.mode like "q*"`, "is like that never"},
		{forbidExport, `context.input.target.hots == "x"`, "there is no context.input.target.hots"},
		// heads that match nothing
		{asItIs, `forbid (principal, action == Action::"call", resource);`, "can never match"},
		{asItIs, `forbid (principal, action == Action::"files/read_file", resource in Server::"crm");`, "no tool fits"},
		{asItIs, `forbid (principal, action == Action::"files/read_file", resource == Tool::"files/delete_file");`,
			"no tool fits"},
		{asItIs, `forbid (principal, action, resource == Server::"files");`, "resource is never a Server"},
		{asItIs, `forbid (principal, action, resource is Server);`, "resource is never a Server"},
		{asItIs, `forbid (principal, action, resource in User::"ann");`, "resource is in never a User"},
		{asItIs, `forbid (principal == Server::"files", action, resource);`, "principal is never a Server"},
		{asItIs, `forbid (principal in Server::"files", action, resource);`, "principal is in never a Server"},
		{asItIs, `forbid (principal is Tool, action, resource);`, "principal is never a Tool"},
		{asItIs, `forbid (principal, action in [], resource);`, "no tool fits"},
		// compared with a wrong type
		{forbidAll, `resource.risk > 3`, "fails to evaluate for every call"},
		{forbidAll, `resource.risk == 3`, "never match"},
		{forbidAll, `resource.allowed == "true"`, "never match"},
		{forbidAll, `resource.allowed > 0`, "fails"},
		{forbidAll, `resource.claims == true`, "never match"},
		{forbidAll, `resource.claims.readOnly == "yes"`, "never match"},
		{forbidAll, `context.session.calls == "3"`, "never match"},
		{forbidAll, `context.session.calls > "3"`, "fails to evaluate for every call"},
		{forbidAll, `context.session.calls like "3*"`, "fails to evaluate for every call"},
		{forbidAll, `context.session.calls.contains(3)`, "fails to evaluate for every call"},
		{forbidAll, `context.session.servers == "files"`, "never match"},
		{forbidAll, `context.session.servers like "files"`, "fails to evaluate for every call"},
		{forbidAll, `context.session.servers.contains(3)`, "never match"},
		{forbidAll, `context.session.servers.contains(Server::"files")`, "never match"},
		{forbidAll, `context.session.servers.containsAny("files")`, "fails to evaluate for every call"},
		{forbidAll, `context.session == 3`, "never match"},
		{forbidAll, `principal.name == 3`, "never match"},
		{forbidAll, `principal == "ann"`, "never match"},
		{forbidAll, `resource == "files/read_file"`, "never match"},
		{forbidAll, `resource in "files"`, "fails"},
		{forbidAll, `resource.server == Server::"files"`, "never match"},
		{forbidAll, `resource.name.contains("file")`, "fails"},
		{forbidRead, `context.input.path == 3`, "never match"},
		{forbidRead, `context.input.path > 3`, "fails to evaluate for every call"},
		{forbidRead, `context.input.path.startsWith("x")`, "p.cedar"},
		{forbidRead, `context.input has limit && context.input.limit like "3*"`, "can fail to evaluate"},
		{forbidRead, `context.input has limit && context.input.limit == "3"`, "never match"},
		{forbidRead, `context.input has limit && context.input.limit > decimal("3.5")`, "can fail to evaluate"},
		{forbidDelete, `context.input has force && context.input.force == "true"`, "never match"},
		{forbidDelete, `context.input has tags && context.input.tags == "x"`, "never match"},
		{forbidDelete, `context.input has tags && context.input.tags.contains(3)`, "never match"},
		{forbidDelete, `context.input has tags && context.input.tags like "x"`, "can fail to evaluate"},
		{forbidFind, `context.input.mode > 3`, "fails to evaluate for every call"},
		{forbidFind, `context.input has score && context.input.score like "9*"`, "can fail to evaluate"},
		{forbidFind, `context.input has score && context.input.score == "9"`, "never match"},
		{forbidFind, `context.input has score && context.input.score == 9`, "never match"},
		{forbidFind, `context.input has score && context.input.score > 9`, "can fail to evaluate"},
		{forbidExport, `context.input.target == "x"`, "never match"},
		{forbidExport, `context.input.target.host > 3`, "fails to evaluate for every call"},
		// values that may be missing
		{forbidRead, `context.input.limit > 3`, "may be missing"},
		{forbidRead, `context.input.range.from > 3`, "may be missing"},
		{forbidRead, `context.input has range && context.input.range.from > 3`, "may be missing"},
		{forbidDelete, `context.input.force`, "may be missing"},
		{forbidDelete, `context.input has force || context.input.force`, "may be missing"},
		{forbidDelete, `!(context.input has force) && context.input.force`, "p.cedar"},
		{forbidFind, `context.input.owner == "ann"`, "may be missing"},
		{forbidExport, `context.input.target.port > 1024`, "may be missing"},
		{forbidFiles, `context.input.path like "/etc/*" && context.input.force`, "may be missing"},
		// one untyped tool does not switch the check off for all
		{forbidFiles, `context.input has path && context.input.path > 3`, "can fail to evaluate"},
		{forbidFiles, `context.input has limit && context.input.limit like "x"`, "can fail to evaluate"},
		{forbidAll, `context.input has path && context.input.path > 3`, "can fail to evaluate"},
		// contradictions
		{forbidAll, `resource.risk == "read" && resource.risk == "write"`, "never match"},
		{forbidAll, `resource.allowed && !resource.allowed`, "never match"},
		{forbidAll, `context.session.calls < 0`, "never match"},
		{forbidAll, `context.session.calls > 5 && context.session.calls < 3`, "never match"},
		{forbidAll, `context.session.runCalls >= 5 && context.session.runCalls == 2`, "never match"},
		{forbidRead, `context.input has limit && !(context.input has limit)`, "never match"},
		{forbidRead, `resource.name == "delete_file"`, "never match"},
		{forbidRead, `resource in Server::"crm"`, "never match"},
		{forbidRead, `action == Action::"files/delete_file"`, "never match"},
		{forbidAll, `false`, "never match"},
		{forbidAll, `"a" == "b"`, "never match"},
		{forbidAll, `1 > 2`, "never match"},
		{asItIs, `forbid (principal, action, resource) unless { true };`, "never match"},
		{asItIs, `forbid (principal, action, resource) when { resource.allowed } unless { resource.allowed };`,
			"never match"},
		{forbidAll, `3`, "fails to evaluate for every call"},
		{forbidAll, `resource.risk && true`, "fails to evaluate for every call"},
		{forbidAll, `!resource.name`, "fails to evaluate for every call"},
		{forbidAll, `ip("not an address").isLoopback()`, "fails to evaluate for every call"},
		{forbidAll, `decimal("1.23456").lessThan(decimal("2.0"))`, "fails to evaluate for every call"},
		{forbidAll, `context.session.calls + "1" > 3`, "fails to evaluate for every call"},
		{forbidAll, `resource.name.isLoopback()`, "p.cedar"},
		// obligations
		{asItIs, `@aprove("owner") permit (principal, action, resource);`, "no obligation @aprove"},
		{asItIs, `@approve("boss") permit (principal, action, resource);`, "in @approve"},
	}
	if len(tests) < 60 {
		t.Errorf("only %d mistakes are tried", len(tests))
	}
	for _, test := range tests {
		source := fmt.Sprintf(test.form, test.condition)
		t.Run(test.condition, func(t *testing.T) {
			if got := problems(source); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q, for %s", got, test.want, source)
			}
		})
	}
}

// Correct policies cause no complaint.
func TestRightPoliciesHaveNoProblems(t *testing.T) {
	tests := []struct{ form, condition string }{
		{forbidAll, `true`},
		{forbidAll, `resource.denied`},
		{forbidAll, `!resource.allowed`},
		{forbidAll, `resource.flagged && !resource.allowed`},
		{forbidAll, `resource.risk == "write"`},
		{forbidAll, `resource.risk != "read"`},
		{forbidAll, `resource.risk == "read" || resource.risk == "write"`},
		{forbidAll, `!(resource.risk == "read") && !(resource.risk == "write")`},
		{forbidAll, `["write", "destructive"].contains(resource.risk)`},
		{forbidAll, `["write", "destructive", "unknown"].contains(resource.risk) && resource.risk != "unknown"`},
		{forbidAll, `resource.risk like "w*"`},
		{forbidAll, `resource.claims.readOnly && !resource.claims.openWorld`},
		{forbidAll, `resource.claims.destructive == true`},
		{forbidAll, `resource.server == "files"`},
		{forbidAll, `resource.server == "mail"`},
		{forbidAll, `resource.server != "files"`},
		{forbidAll, `resource.server == "files" && resource.name == "read_file"`},
		{forbidAll, `resource.name like "*delete*"`},
		{forbidAll, `resource.name == "send"`}, // of the server that is missing
		{forbidAll, `resource in Server::"files"`},
		{forbidAll, `resource in Server::"mail"`},
		{forbidAll, `resource in [Server::"files", Server::"crm"]`},
		{forbidAll, `resource == Tool::"crm/find"`},
		{forbidAll, `resource == Tool::"mail/send"`},
		{forbidAll, `resource is Tool`},
		{forbidAll, `resource is Tool in Server::"crm"`},
		{forbidAll, `principal is User && principal.name == "ann"`},
		{forbidAll, `principal == User::"ann"`},
		{forbidAll, `principal.name like "svc-*"`},
		{forbidAll, `action in Action::"call"`},
		{forbidAll, `action == Action::"crm/export"`},
		{forbidAll, `action in [Action::"crm/export", Action::"files/delete_file"]`},
		{forbidAll, `context.session.calls > 100`},
		{forbidAll, `context.session.calls >= 0`},
		{forbidAll, `context.session.calls > 3 && context.session.calls < 5`},
		{forbidAll, `context.session.calls + context.session.runCalls > 100`},
		{forbidAll, `context.session.calls - 3 > 100`},
		{forbidAll, `context.session.calls * 2 > 100`},
		{forbidAll, `context.session.servers.contains("crm")`},
		{forbidAll, `context.session.servers.containsAny(["crm", "files"])`},
		{forbidAll, `context.session.servers.containsAll(["crm"])`},
		{forbidAll, `!context.session.servers.isEmpty()`},
		{forbidAll, `context.session.servers.contains("crm") && resource.server != "crm"`},
		{forbidAll, `context.input has path && context.input.path like "*/.ssh/*"`},
		{forbidAll, `context.input has path && context.input.path == "/etc/passwd"`},
		{forbidAll, `context.input has whatever`},
		{forbidAll, `context has input`},
		{forbidAll, `resource has risk && resource.risk == "write"`},
		{forbidAll, `context.session has calls && context.session.calls > 3`},
		{forbidAll, `if resource.allowed then resource.risk == "destructive" else true`},
		{forbidAll, `if context.input has path then context.input.path like "/srv/*" else false`},
		{forbidRead, `context.input.path like "/etc/*"`},
		{forbidRead, `context.input.path != "/srv/a"`},
		{forbidRead, `context.input has limit && context.input.limit > 1000`},
		{forbidRead, `!(context.input has limit) || context.input.limit > 1000`},
		{forbidRead, `context.input has range && context.input.range has from && context.input.range.from > 3`},
		{forbidRead, `context.input has range.from && context.input.range.from > 3`},
		{forbidDelete, `context.input has force && context.input.force`},
		{forbidDelete, `context.input has force && context.input.force == true`},
		{forbidDelete, `context.input has tags && context.input.tags.contains("keep")`},
		{forbidDelete, `context.input has tags && context.input.tags.containsAny(["keep", "legal"])`},
		{forbidDelete, `(context.input has force && context.input.force) || context.input.path like "/srv/*"`},
		{forbidFind, `context.input.mode == "fast"`},
		{forbidFind, `["fast", "slow"].contains(context.input.mode)`},
		{forbidFind, `context.input has owner && context.input.owner == "ann"`},
		{forbidFind, `context.input has score && context.input.score.greaterThan(decimal("3.0"))`},
		{forbidFind, `context.input has score && context.input.score == decimal("3.0")`},
		{forbidFind, `context.input has id && context.input.id == "x"`},
		{forbidFind, `context.input has id && context.input.id == 3`},
		{forbidExport, `context.input.target.host like "*.example"`},
		{forbidExport, `context.input.target has port && context.input.target.port > 1024`},
		{forbidExport, `context.input.target.host == "localhost" || context.input.target.host == "127.0.0.1"`},
		{forbidExport, `ip("127.0.0.1").isLoopback()`},
		{forbidFiles, `context.input has path && context.input.path like "/etc/*"`},
		{forbidFiles, `context.input has force && context.input.force`},
		{asItIs, `permit (principal, action, resource);`},
		{asItIs, `permit (principal == User::"ann", action in Action::"call", resource is Tool);`},
		{asItIs, `permit (principal, action in [Action::"files/read_file", Action::"crm/find"], resource);`},
		{asItIs, `permit (principal, action == Action::"mail/send", resource) when { context.input has to && ` +
			`context.input.to like "*@example.com" };`},
		{asItIs, `permit (principal, action, resource in Server::"mail") when { context.input.anything > 3 };`},
		{asItIs, `@id("a") @reason("b") @description("c") @approve("owner") permit (principal, action, resource) ` +
			`unless { resource.denied };`},
		{asItIs, `permit (principal, action, resource) when { resource.allowed } unless { resource.risk == ` +
			`"destructive" };`},
		{asItIs, `forbid (principal, action == Action::"files/anything", resource) when { context.input has x && ` +
			`context.input.x like "y" };`},
		{asItIs, `forbid (principal, action == Action::"files/anything", resource) when { context.input has x && ` +
			`context.input.x > 3 };`},
	}
	if len(tests) < 60 {
		t.Errorf("only %d right policies are tried", len(tests))
	}
	for _, test := range tests {
		source := fmt.Sprintf(test.form, test.condition)
		t.Run(test.condition, func(t *testing.T) {
			if got := problems(source); got != "" {
				t.Errorf("got %q, want none, for %s", got, source)
			}
		})
	}
}

func problems(source string) string {
	var said []string
	for _, p := range policies.Check([]policies.File{{Name: "p.cedar", Source: []byte(source)}}, shop()) {
		if !p.Warning {
			said = append(said, p.String())
		}
	}
	return strings.Join(said, "\n")
}
