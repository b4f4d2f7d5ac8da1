package admission_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// A proposed rule is compared with the calls of its principal and tool whose arguments were kept (issue 27).
func TestProposalsAreComparedWithThePast(t *testing.T) {
	dir := t.TempDir()
	past := admission.Past{Log: filepath.Join(dir, "audit"), Keys: filepath.Join(dir, "keys"),
		Clean: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }}
	log, err := audit.Open(past.Log, &audit.Options{Keys: past.Keys,
		KeepArguments: &audit.ArgumentsOptions{Keep: time.Hour, Size: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	for id, call := range map[string]struct{ principal, issuer, tool, arguments, approval string }{
		"call_1": {"ann", "", "write_file", `{"path":"/srv/docs/a","content":"<a & hunter2>"}`, "approved"},
		"call_2": {"ann", "", "write_file", `{"path":"/srv/docs/b","content":""}`, "denied"},
		"call_3": {"ann", "", "write_file", `{"path":"/etc/passwd","content":""}`, "denied"},
		"call_4": {"ann", "https://id.example", "write_file", `{"path":"/srv/docs/c","content":""}`, "approved"},
		"call_5": {"bob", "", "write_file", `{"path":"/srv/docs/d","content":""}`, "approved"},
		"call_6": {"ann", "", "read_file", `{"path":"/srv/docs/e"}`, ""},
		"call_7": {"ann", "", "write_file", "", "approved"}, // its arguments were not kept
	} {
		record := audit.Record{Kind: audit.KindOutcome,
			Identity: audit.Identity{Principal: call.principal, Issuer: call.issuer, RunID: "run_1"},
			Act: audit.Act{CallID: id, ServerID: "files", ToolName: call.tool,
				ArgumentsHash: log.Hash([]byte(call.arguments)), Values: json.RawMessage(call.arguments)},
			Ruling: audit.Ruling{Decision: "allow", Approval: call.approval},
			Effect: audit.Effect{Outcome: audit.OutcomeOK}}
		if err := log.Append(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "files", Tools: []catalog.Tool{{
		ServerID: "files", Name: "write_file", InputSchema: json.RawMessage(
			`{"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}`)}}}})
	if err != nil {
		t.Fatal(err)
	}
	rules := admission.RuleSet{Files: []policies.File{policies.Default()}, Snapshot: snapshot}
	p, err := rules.Propose(caller.Caller{Principal: "ann"}, "files", "write_file",
		`{"path":"/srv/docs/a","content":"x"}`, "ann", []string{"content"}, past)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rules.Propose(caller.Caller{Principal: "ann"}, "files", "write_file",
		`{"path":"/srv/docs/a","content":"hunter2"}`, "ann", nil, past)
	if !errors.Is(err, admission.ErrSecret) {
		t.Errorf("a secret: got %v", err)
	}
	c := p.Coverage
	for _, e := range c.Examples {
		if strings.Contains(e.Arguments, "hunter2") {
			t.Errorf("an example has a secret: %s", e.Arguments)
		}
	}
	if c.Calls != 4 || c.Covered != 2 || c.Unknown != 1 || len(c.Examples) != 2 || c.Answers["approved"] != 1 ||
		c.Answers["denied"] != 1 {
		t.Errorf("got %+v of\n%s", c, p.Rule)
	}
}
