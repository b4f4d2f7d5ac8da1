package policies_test

import (
	"fmt"
	"strings"
	"testing"
)

// Conditions that contradict an earlier part, or that compare wrong types while the rest of
// the rule can match.
func TestContradictionsAreNamed(t *testing.T) {
	for _, test := range []struct{ form, condition, want string }{
		{forbidAll, `context.session.servers.contains("files") && !context.session.servers.contains("files")`,
			"never match"},
		{forbidAll, `!context.session.servers.contains("files") && context.session.servers.contains("files")`,
			"never match"},
		{forbidAll, `context.session.servers.isEmpty() && context.session.servers.contains("files")`, "never match"},
		{forbidAll, `resource.name like "delete*" && resource.name == "read_file"`, "never match"},
		{forbidAll, `resource.name like "delete*" && resource.name like "read*"`, "never match"},
		{forbidAll, `resource.name like "*_file" && resource.name like "*_list"`, "never match"},
		{forbidAll, `resource.name like "a*" && !(resource.name like "a*")`, "never match"},
		{forbidRead, `context.input.path like "/etc/*" && context.input.path == "/home"`, "never match"},
		{forbidRead, `context.input.path like "/etc/*" && context.input.path like "/home/*"`, "never match"},
		{forbidRead, `ip(context.input.path).isLoopback() && !ip(context.input.path).isLoopback()`, "never match"},
		{forbidAll, `resource.name != resource.name`, "never match"},
		{forbidAll, `context.session.calls != context.session.calls`, "never match"},
		{forbidAll, `resource in Server::"files" && resource in Server::"crm"`, "never match"},
		{forbidAll, `resource in Server::"mail" && !(resource in Server::"mail")`, "never match"},
		{forbidAll, `!(action in Action::"call")`, "never match"},
		{forbidAll, `principal == User::"ann" && principal == User::"bob"`, "never match"},
		{forbidAll, `principal == User::"ann" && principal != User::"ann"`, "never match"},
		{forbidAll, `context.session.calls + 1 == 0`, "never match"},
		{forbidAll, `context.session.calls * 2 < 0`, "never match"},
		{forbidAll, `context.session.calls > 9223372036854775807`, "never match"},
		{forbidAll, `context.session == {calls: 1}`, "never match"},
		{forbidAll, `context == {}`, "never match"},
		{forbidAll, `{a: 1} == {a: "1"}`, "never match"},
		{forbidAll, `{a: 1}.b == 1`, "there is no"},
		{forbidAll, `resource.hasTag("x")`, "nothing has tags"},
		{forbidAll, `resource.getTag("x") == "y"`, "nothing has tags"},
		{forbidAll, `resource in [Server::"files", "crm"]`, "not of entities"},
		{forbidAll, `context.session.servers.containsAll(["fils"])`, `never "fils"`},
		{forbidAll, `context.session.servers.containsAny(["files", "crmm"])`, `never "crmm"`},
		{asItIs, `permit (principal, action, resource) unless { resource.risk == 3 };`, "never equal"},
		{asItIs, `permit (principal, action, resource) unless { context.session.calls == "3" };`, "never equal"},
		{forbidAll, `resource.allowed || resource.risk == 3`, "never equal"},
		{forbidAll, `resource.allowed && resource.risk != 3`, "never equal"},
		{forbidAll, `if resource.allowed then resource.risk == true else true`, "never equal"},
		{forbidAll, `resource.allowed || context.session.servers.contains(3)`, "never a whole number"},
		{forbidRead, `resource.allowed || context.input.path == 3`, "never equal"},
		{asItIs, `@approve("owner") forbid (principal, action, resource);`, "@approve on a forbid"},
	} {
		source := test.condition
		if test.form != asItIs {
			source = fmt.Sprintf(test.form, test.condition)
		}
		if got := problems(source); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q, for %s", got, test.want, source)
		}
	}
}

// Similar conditions that are correct cause no complaint.
func TestWhatIsNoContradiction(t *testing.T) {
	for _, test := range []struct{ form, condition string }{
		{forbidAll, `resource.name like "get_*" || resource.name like "list_*"`},
		{forbidAll, `resource.name like "read_*" && resource.name like "*_file"`},
		{forbidAll, `resource.name like "*a*" && resource.name like "*b*"`},
		{forbidAll, `resource.name like "*a*" && !(resource.name like "*b*")`},
		{forbidAll, `resource.name like "re*" && resource.name like "read*"`},
		{forbidAll, `resource.name like "re*" && resource.name == "read_file"`},
		{forbidRead, `context.input.path like "/etc/*" || context.input.path like "/root/*"`},
		{forbidRead, `(context.input.path like "/etc/*" && resource.allowed) || context.input.path == "/home"`},
		{forbidRead, `!(context.input.path like "/srv/*")`},
		{forbidRead, `!(context.input.path like "/srv/*") && !(context.input.path like "/data/*")`},
		{forbidRead, `context.input.path like "/srv/*" && context.input.path like "*..*"`},
		{forbidRead, `context.input.path like "/srv/*" && context.input.path != "/srv/public"`},
		{forbidRead, `context.input.path like "*.pem" && context.input.path like "/home/*"`},
		{forbidRead, `context.input.path like "*\**"`},
		{asItIs, `forbid (principal, action == Action::"files/read_file", resource) when { context.input.path like ` +
			`"/srv/*" } unless { context.input.path like "/srv/public/*" };`},
		{asItIs, `forbid (principal, action == Action::"files/read_file", resource) unless { context.input.path like ` +
			`"/srv/*" };`},
		{asItIs, `forbid (principal, action, resource) when { resource.risk == "write" } when { resource.allowed };`},
		{asItIs, `permit (principal, action, resource) unless { context.session.servers.contains("crm") };`},
		{asItIs, `permit (principal, action, resource) when { principal == User::"ann" || principal == User::"bob" };`},
		{forbidAll, `principal != User::"ann" && principal != User::"bob"`},
		{forbidAll, `principal == User::"ann" && principal.name == "ann"`},
		{forbidAll, `context.session.servers.contains("crm") && context.session.servers.contains("files")`},
		{forbidAll, `!context.session.servers.isEmpty() && context.session.servers.contains("crm")`},
		{forbidAll, `context.session.servers.isEmpty() || context.session.servers.contains("crm")`},
		{forbidAll, `context.session.servers.contains("crm") && !context.session.servers.contains("files")`},
		{forbidAll, `context.session.calls + context.session.runCalls > 10`},
		{forbidAll, `context.session.calls * 2 > 10 && context.session.calls - 5 < 0`},
		{forbidAll, `[1, 2, 3].contains(context.session.calls)`},
		{forbidAll, `resource in Server::"files" || resource in Server::"crm"`},
		{forbidAll, `resource in Server::"files" && !(resource == Tool::"files/read_file")`},
		{forbidAll, `resource in Server::"files" && resource.name == "read_file"`},
		{forbidAll, `!(resource in Server::"mail")`},
		{forbidAll, `resource is Tool in Server::"files" && resource.risk != "read"`},
		{forbidAll, `action == Action::"files/read_file" || action == Action::"crm/find"`},
		{forbidAll, `action in [Action::"files/read_file", Action::"call"]`},
		{forbidAll, `(resource.risk == "read" && resource.allowed) || (resource.risk == "write" && resource.flagged)`},
		{forbidAll, `if resource.risk == "read" then context.session.calls > 3 else context.session.calls > 1`},
		{forbidAll, `resource.name != "read_file" && resource.name != "delete_file"`},
		{forbidFind, `context.input has id && (context.input.id == 3 || context.input.id == "x")`},
		{forbidFind, `context.input has id && context.input.id == 3`},
		{forbidFind, `context.input.mode == "fast" || context.input.mode == "slow"`},
		{forbidFind, `context.input has owner && context.input.owner like "a*" && context.input.mode == "fast"`},
		{forbidFiles, `context.input has path && context.input.path like "/etc/*" && resource.risk != "read"`},
		{forbidFiles, `context.input has tags && context.input.tags.contains("keep")`},
		{forbidDelete, `context.input has tags && !context.input.tags.isEmpty() && ` +
			`context.input.tags.contains("keep")`},
		{forbidDelete, `context.input has tags && context.input.tags.containsAny(["keep"]) && ` +
			`!context.input.tags.contains("old")`},
		{forbidDelete, `context.input has tags && context.input.tags == ["keep"]`},
		{forbidRead, `context.input == {path: "/etc/passwd"}`},
		{forbidRead, `context.input has range && context.input.range == {from: 3}`},
		{forbidExport, `context.input.target == {host: "x"}`},
		{asItIs, `@approve("owner") permit (principal, action, resource) when { resource.risk == "write" };`},
		{asItIs, `forbid (principal, action == Action::"files/anything", resource) when { context.input has x && ` +
			`(context.input.x == 3 || context.input.x == "y") };`},
	} {
		source := test.condition
		if test.form != asItIs {
			source = fmt.Sprintf(test.form, test.condition)
		}
		if got := problems(source); got != "" {
			t.Errorf("got %q, want none, for %s", got, source)
		}
	}
}

// A policy of more parts than anybody writes is not looked into for minutes.
func TestLargePoliciesAreToldSo(t *testing.T) {
	for _, source := range []string{
		`forbid (principal, action, resource) when { true` + strings.Repeat(" && true", 20_000) + ` };`,
		`forbid (principal, action, resource) when { ` + strings.Repeat("!", 20_001) + `true };`,
		`forbid (principal, action, resource) when { context` + strings.Repeat(".session", 20_000) + ` };`,
	} {
		if got := problems(source); !strings.Contains(got, "divide it") && !strings.Contains(got, "p.cedar") {
			t.Errorf("%.60s: got %.200q", source, got)
		}
	}
}
