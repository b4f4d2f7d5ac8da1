package policies_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/policies"
)

// Issue 30: no connection is permitted unless a permit names Action::"connect". A forbid for all actions counts, and
// denies if it cannot be evaluated for a host.
func TestConnections(t *testing.T) {
	const github = `@id("github") permit (principal, action == Action::"connect", resource) when { resource.name == ` +
		`"api.github.com" };`
	for name, c := range map[string]struct {
		source  string
		host    string
		session policies.Session
		allow   bool
		reason  string
	}{
		"a permit of connections": {source: github, allow: true},
		"another host":            {source: github, host: "evil.com", reason: "no policy permits it"},
		"a permit of everything is about tools": {source: `permit (principal, action, resource);`,
			reason: "no policy permits it"},
		"a permit of all calls": {source: `permit (principal, action in Action::"call", resource);`,
			reason: "no policy permits it"},
		"a permit of several actions": {source: `permit (principal, action in [Action::"call", Action::"connect"], ` +
			`resource);`,
			allow: true},
		"a forbid of everything": {source: github + `@id("stop") forbid (principal, action, resource);`,
			reason: "policy stop"},
		"a forbid after a read": {source: github + `@id("taint") forbid (principal, action, resource)
			when { context.session.servers.contains("crm") };`, session: policies.Session{Servers: []string{"crm"}},
			reason: "policy taint"},
		"the same without the read": {source: github + `forbid (principal, action, resource)
			when { context.session.servers.contains("crm") };`, allow: true},
		"an unknown session": {source: github + `forbid (principal, action, resource)
			when { context.session.servers.contains("crm") };`, session: policies.Session{Unknown: true},
			reason: "could not be evaluated"},
		"a forbid about tools that fails": {source: github + `forbid (principal, action, resource)
			when { resource.server == "x" };`, reason: "could not be evaluated"},
		"the default's forbid": {source: github + `forbid (principal, action, resource) when { resource.denied };`,
			allow: true},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(c.source)})
			if err != nil {
				t.Fatal(err)
			}
			if c.host == "" {
				c.host = "api.github.com"
			}
			d := engine.DecideConnect(policies.Connection{Principal: "ann", Host: c.host, Port: 443,
				Session: c.session})
			if reasons := strings.Join(d.Reasons, "; "); d.Allow != c.allow || !strings.Contains(reasons, c.reason) {
				t.Errorf("got %v (%s), want %v with %q", d.Allow, reasons, c.allow, c.reason)
			}
		})
	}
	var none *policies.Engine
	if none.DecideConnect(policies.Connection{Host: "api.github.com", Port: 443}).Allow {
		t.Error("without policies a connection is permitted")
	}
}

// Issue 30: policy check finds mistakes in policies about connections.
func TestMistakesAboutConnections(t *testing.T) {
	for body, want := range map[string]string{
		`when { resource.nam == "x" }`:               "nam",
		`when { resource.port == "443" }`:            "",
		`when { resource.name > 3 }`:                 "String",
		`when { context.input.path == "x" }`:         "input",
		`when { context.session.servers == "crm" }`:  "",
		`when { principal.role == "admin" }`:         "role",
		`when { resource.name like "*.github.com" }`: "-",
		`when { context.session.runCalls < 10 }`:     "-",
	} {
		file := policies.File{Name: "p.cedar",
			Source: []byte(`permit (principal, action == Action::"connect", resource) ` + body + `;`)}
		problems := policies.Check([]policies.File{file}, servers())
		if want == "-" {
			if len(problems) > 0 {
				t.Errorf("%s: got %v, want no problem", body, problems)
			}
			continue
		}
		if len(problems) == 0 || !strings.Contains(problems[0].Text, want) {
			t.Errorf("%s: got %v, want a problem with %q", body, problems, want)
		}
	}
}
