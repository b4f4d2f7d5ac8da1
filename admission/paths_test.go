package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/policies"
)

// Issue 24: an act that is denied when announced is also denied as a direct call, as a call made by
// code and as a question about the tool, for any name of tool and argument. The
// tool's server claims that it only reads, and the operator believes it.
func TestAnnouncedAndRealActsHaveOneDecision(t *testing.T) {
	const name = "files/touch"
	for _, declared := range []policies.Risk{policies.RiskLow, policies.RiskUnknown, policies.RiskCritical} {
		o := newOffice(t, func(opts *options) {
			opts.Limiter = nil
			opts.Tools = func(tool string) []risk.Declared {
				if tool != name && tool != "touch" {
					return nil
				}
				return []risk.Declared{{Risk: declared}}
			}
		})
		for kind, matrix := range map[string][]string{
			"supervised": {"APPROVED", "DENIED", "DENIED"}, "autonomous": {"APPROVED", "PENDING", "DENIED"},
			"trusted": {"APPROVED", "APPROVED", "APPROVED"},
		} {
			for i, c := range []struct {
				arguments string
				risk      policies.Risk
			}{
				{`{"path": "a"}`, policies.RiskLow},
				{`{"path": "SELECT * FROM users"}`, policies.RiskLow},
				{`{"path": "DELETE FROM users WHERE id = 1"}`, policies.RiskHigh},
				{`{"deep": [{"er": ["x", {"y": "UPDATE users SET a = 1 WHERE b = 2"}]}]}`, policies.RiskHigh},
				{`{"json": "{\"q\": \"INSERT INTO users VALUES (1)\"}"}`, policies.RiskHigh},
				{`{"path": "DROP TABLE users"}`, policies.RiskCritical},
				{`{"data": "RFJPUCBUQUJMRSB1c2Vycw=="}`, policies.RiskCritical},
				{`{"path": "rm -rf /srv"}`, policies.RiskCritical},
				{`{"code": "print(1)"}`, policies.RiskCritical},
			} {
				// Only LOW, HIGH and CRITICAL occur.
				want := matrix[map[string]int{"LOW": 0, "HIGH": 1,
					"CRITICAL": 2}[max(c.risk, declared.Known()).Level()]]
				a, _ := o.register(kind, `, "permissions": {"allowed_tools": ["`+name+`"]}`)
				nested := call(a, "touch", "")
				nested.Arguments, nested.Request.Settings.Risk, nested.Nested = json.RawMessage(c.arguments), declared,
					true
				direct := nested
				direct.Nested, direct.Conversation = false, fmt.Sprint("direct", i)
				ofTool := "DENIED"
				r, err := o.tool(a.ID, name, json.RawMessage(c.arguments))
				switch {
				case err != nil:
					t.Fatal(err)
				case r.Approved:
					ofTool = "APPROVED"
				case r.ApprovalID != "":
					ofTool = "PENDING"
				}
				announced := fmt.Sprintf(`{"type": %q, "parameters": %s}`, name, c.arguments)
				for path, got := range map[string]string{
					"announced": o.try(a, announced, step(1)), "about the tool": ofTool,
					"a direct call": first(o.act(direct)), "a call of code": first(o.act(nested)),
				} {
					if got, _, _ = strings.Cut(got, " "); got != want {
						t.Errorf("a tool of the risk %s, %s, %s of %s: %s, want %s", declared, kind, path, c.arguments,
							got, want)
					}
				}
			}
		}
	}
}

func first(word string, _ *admission.Grant) string { return word }

// Issue 24: the members of an announced action are inspected like arguments.
func TestAnnouncedTextsRaiseTheRisk(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for i, announced := range []string{
		`{"type": "get_weather", "query": "DELETE FROM users"}`,
		`{"type": "read_file", "target": "UPDATE users SET a = 1"}`,
		`{"type": "calculate", "code": "__import__('os').system('id')"}`,
		`{"type": "query_data", "parameters": {"filter": {"statement": "VACUUM"}}}`,
	} {
		d := o.verify(a, announced, step(i+1))
		if d.Decision != admission.Denied || d.Error.Code != admission.CodePolicy ||
			!strings.Contains(d.Error.Message, "arguments.") {
			t.Errorf("%s: %+v %v", announced, d, d.Error)
		}
	}
}

// Issue 24: a request is read and assessed before its transaction, so that the writer only writes.
// While a large one is assessed, other agents get their decisions, and so do small requests of the
// same account. Inside the transaction, this test would deadlock.
func TestAssessingBlocksNobody(t *testing.T) {
	var during func()
	o := newOffice(t, func(opts *options) {
		opts.Limiter = nil
		opts.Tools = func(tool string) []risk.Declared {
			if tool == "my_tool" {
				during()
			}
			return nil
		}
	})
	busy, _ := o.register("trusted", `, "permissions": {"allowed_tools": ["my_tool"]}`)
	other, _ := o.register("trusted", "")
	during = func() {
		if got := o.try(other, action("calculate", "1"), step(1)); got != "APPROVED" {
			t.Errorf("another agent of the account: %s", got)
		}
	}
	large := fmt.Sprintf(`{"type": "my_tool", "parameters": {"q": %q}}`, strings.Repeat("SELECT 1; ", 80_000))
	if d := o.verify(busy, large, step(1)); d.Decision != admission.Approved {
		t.Errorf("%+v %v", d, d.Error)
	}
}

// Numbers are compared in linear time, and exactly.
func TestNumbersThatNoDoubleHolds(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Limiter = nil })
	a, _ := o.register("trusted", "")
	for i, c := range []struct{ number, want string }{
		{"1", "APPROVED"}, {"-0.0", "APPROVED"}, {"1e2", "APPROVED"}, {"100.000", "APPROVED"}, {"0.1", "APPROVED"},
		{"9007199254740992", "APPROVED"},
		{"1.5E-7", "APPROVED"}, {"9007199254740993", "DENIED QWED-AGENT-ACTION-002"},
		{"0.1000000000000000055", "DENIED QWED-AGENT-ACTION-002"},
		{"1e-400", "DENIED QWED-AGENT-ACTION-002"}, {"1e400", "DENIED QWED-AGENT-ACTION-002"},
	} {
		if got := o.try(a, fmt.Sprintf(`{"type": "calculate", "parameters": {"n": %s}}`, c.number),
			step(i+1)); got != c.want {
			t.Errorf("%s: %s, want %s", c.number, got, c.want)
		}
	}
}
