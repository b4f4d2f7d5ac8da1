package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

func request(action, agent, params string, policies ...string) kernel.Request {
	return kernel.Request{Action: action, Agent: agent, Params: json.RawMessage(params), Policies: policies}
}

// K-019: the answer has the documented form, and the tool is really called.
func TestAnAllowedActionIsDispatched(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Supervised)
	w.output = kernel.Output{RunID: "run_1", Data: json.RawMessage(`[{"n":1}]`)}
	got, err := w.Execute(t.Context(), local, request(
		"database_query", id, `{"query":"SELECT 1"}`, "read_only", "no_pii"))
	raw, _ := json.Marshal(got)
	want := `{"status":"executed","action":"database_query","result":"Action 'database_query' executed successfully",` +
		`"params_received":["query"],"output":[{"n":1}],"run_id":"run_1"}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v; want %s", raw, err, want)
	}
	if taken := w.taken(); len(taken) != 1 || taken[0] != `agent db/query {"query":"SELECT 1"}` {
		t.Errorf("dispatched %q", taken)
	}
	w.output = kernel.Output{Failure: &kernel.Failure{Type: "ToolError", Message: "no such table"}}
	if got, err := w.Execute(t.Context(), local, request("database_query", id, `{"query":"SELECT 1"}`)); err != nil ||
		got.Status != "failed" || got.Error.Message != "no such table" || got.Result != "" {
		t.Errorf("a tool that failed: %+v, %v", got, err)
	}
}

// K-018, K-020, T38: policies parse SQL and inspect values.
// A caller that acts as an agent stays in its conversation: rules about what the conversation has
// read apply to the agent's calls and runs.
func TestAnActionBelongsToTheConversationOfItsActor(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	for _, actor := range []kernel.Actor{local, agentActor(id)} {
		actor.Lineage = "conversation "
		for _, r := range []kernel.Request{request("database_query", id, `{"query":"SELECT 1"}`),
			request("execute_code", id, `{"code":"1","language":"python"}`)} {
			if _, err := w.Execute(t.Context(), actor, r); err != nil {
				t.Errorf("%s: %v", r.Action, err)
			}
			if taken := w.taken(); len(taken) != 1 || !strings.HasPrefix(taken[0], "conversation agent") {
				t.Errorf("%s: got %q, want it in the conversation of the actor", r.Action, taken)
			}
		}
	}
}

// Issue 24: an agent whose permissions block kernel_execute does none of its actions.
func TestABlockedKernelDoesNothing(t *testing.T) {
	w := newWorld(t)
	a, _, err := w.agents.Register(t.Context(), agents.Registration{Name: "x", Type: agents.Trusted, PrincipalID: "ann",
		Permissions: agents.Permissions{BlockedTools: []string{"kernel_execute"}}}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []kernel.Request{request("database_query", a.ID, `{"query":"SELECT 1"}`),
		request("execute_code", a.ID, `{"code":"1","language":"python"}`),
		request("file_write", a.ID, `{"path":"a","content":"b"}`), request("file_list", a.ID, `{}`)} {
		if _, err := w.Execute(t.Context(), agentActor(a.ID), r); !strings.Contains(refusal(t, err), "blocked_tools") ||
			len(w.taken()) != 0 {
			t.Errorf("%s: %v", r.Action, err)
		}
	}
}

func TestPoliciesBlock(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	const write = "SIGKILL: Policy violation - Write query blocked by read_only policy"
	for _, c := range []struct {
		action, params string
		policies       []string
		want           string // empty: dispatched
	}{
		{"database_query", `{"query":"INSERT INTO t VALUES (1)"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"UPDATE t SET a = 1 WHERE b = 2"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"DELETE FROM t WHERE a = 1"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"  \n delete from t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"WITH x AS (SELECT 1) DELETE FROM t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"DROP TABLE t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"/* SELECT */ TRUNCATE t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"SELECT 1; DROP TABLE t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"SELECT pg_sleep(10)"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"SET ROLE admin"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"EXPLAIN ANALYZE DELETE FROM t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"SELECT 'unclosed"}`, []string{"read_only"}, write},
		{"database_query", `{"query":["DELETE FROM t"]}`, []string{"read_only"}, write},
		{"database_query", `{"sql":"SELECT 1"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"SELECT 1","then":["x",{"y":"DROP TABLE t"}]}`, []string{"read_only"}, write},
		// SQL Server runs the DELETE
		{"database_query", `{"query":"EXPLAIN DELETE FROM t"}`, []string{"read_only"}, write},
		{"database_query", `{"query":"EXPLAIN SELECT 1"}`, []string{"read_only"}, ""},
		{"database_query", `{"query":"SELECT 'DROP TABLE t'"}`, []string{"read_only", "no_destruction"}, ""},
		{"database_query", `{"query":"UPDATE t SET a = 1 WHERE b = 2"}`, []string{"no_destruction"}, ""},
		{"database_query", `{"query":"DELETE FROM t"}`, []string{"no_destruction"},
			"SIGKILL: Policy violation - Destructive action blocked by no_destruction policy"},
		{"look_up", `{}`, []string{"read_only"}, ""},
		{"send_email", `{}`, []string{"read_only"},
			"SIGKILL: Policy violation - Write action blocked by read_only policy"},
		{"wipe", ``, []string{"no_destruction"},
			"SIGKILL: Policy violation - Destructive action blocked by no_destruction policy"},
		{"execute_code", `{"language":"python","code":"x"}`, []string{"read_only"},
			"SIGKILL: Policy violation - Write action blocked by read_only policy"},
		{"file_write", `{"path":"a","content":"x"}`, []string{"read_only"},
			"SIGKILL: Policy violation - Write action blocked by read_only policy"},
		{"send_email", `{"to":"ann.smith@northwind-mail.com"}`, []string{"no_pii"},
			"SIGKILL: Policy violation - Personal data blocked by no_pii policy"},
		{"send_email", `{"body":{"lines":["card 4111 1111 1111 1111"]}}`, []string{"no_pii"},
			"SIGKILL: Policy violation - Personal data blocked by no_pii policy"},
		{"send_email", `{"body":"the word email, and SSN, and credit card"}`, []string{"no_pii"}, ""},
		{"send_email", `{"body":"key ghp_16C7e42F292c6912E7710c838347Ae178B4a"}`, []string{"no_secrets"},
			"SIGKILL: Policy violation - Credential blocked by no_secrets policy"},
		{"look_up", `{}`, []string{"read_only", "nopii"}, `Unknown policy "nopii"`},
		{"unknown_action", `{}`, nil, `Action "unknown_action" is not configured`},
		{"database_write", `{"query":"DELETE FROM t"}`, []string{"read_only"}, write},
	} {
		_, err := w.Execute(t.Context(), local, request(c.action, id, c.params, c.policies...))
		taken := w.taken()
		switch {
		case c.want == "" && (err != nil || len(taken) != 1):
			t.Errorf("%s %s %v: %v, dispatched %q", c.action, c.params, c.policies, err, taken)
		case c.want != "" && (!strings.HasPrefix(refusal(t, err), c.want) || len(taken) != 0):
			t.Errorf("%s %s %v: %v, dispatched %q; want %q", c.action, c.params, c.policies, err, taken, c.want)
		}
	}
}

// K-021, T39: an agent's state applies to each later call.
func TestSignalsStopAnAgent(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	execute := func() error {
		_, err := w.Execute(t.Context(), local, request("look_up", id, `{}`))
		return err
	}
	for _, c := range []struct {
		status agents.Status
		want   string
	}{{agents.Suspended, "SIGSTOP: Agent is stopped until it gets SIGCONT"}, {agents.Active, ""},
		{agents.Killed, "SIGKILL: Agent was killed"}} {
		if err := w.agents.SetStatus(t.Context(), id, c.status, "ann"); err != nil {
			t.Fatal(err)
		}
		err := execute()
		if c.want == "" && err != nil || c.want != "" && refusal(t, err) != c.want {
			t.Errorf("%s: %v, want %q", c.status, err, c.want)
		}
	}
	if taken := w.taken(); len(taken) != 1 {
		t.Errorf("dispatched %q", taken)
	}
}

// K-018, K-044: callers that may act as an agent, and invalid requests.
func TestWhoActsAsAnAgent(t *testing.T) {
	w := newWorld(t)
	ofAnn, ofBob := w.register(t, "ann", agents.Trusted), w.register(t, "bob", agents.Trusted)
	admin := bob
	admin.Scopes = []string{caller.ScopeAdmin}
	without := bob
	without.Scopes = []string{caller.ScopeAudit, caller.ScopeSlash}
	for name, c := range map[string]struct {
		actor kernel.Actor
		agent string
		ok    bool
	}{
		"the local user":        {local, ofBob, true},
		"its owner":             {bob, ofBob, true},
		"another user":          {bob, ofAnn, false},
		"an administrator":      {admin, ofAnn, true},
		"without the scope":     {without, ofBob, false},
		"itself":                {agentActor(ofBob), ofBob, true},
		"another agent":         {agentActor(ofBob), ofAnn, false},
		"of no kind":            {kernel.Actor{Caller: caller.Caller{Principal: ofBob}}, ofBob, false},
		"an unregistered agent": {local, "agent-001", false},
		"by its name":           {local, "x", false},
		"an empty name":         {local, "", false},
		"a look-alike":          {local, strings.Replace(ofAnn, "a", "\u0430", 1), false},
	} {
		_, err := w.Execute(t.Context(), c.actor, request("look_up", c.agent, `{}`))
		if c.ok && err != nil || !c.ok && !strings.Contains(refusal(t, err), "is not registered") ||
			c.ok != (len(w.taken()) == 1) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// K-021: the log names the caller who tried to act as another.
	if log, err := w.Log(t.Context(), local, kernel.LogQuery{Limit: 100, Agent: ofBob, Type: "blocked"}); err != nil ||
		log.Total != 2 || !strings.Contains(log.Logs[0].Detail+log.Logs[1].Detail, ofAnn) {
		t.Errorf("%+v, %v", log, err)
	}
	for params, want := range map[string]string{`[]`: "params is not an object", `{"a":1,"a":2}`: "params: ",
		`{`: "params: ", `{"a":NaN}`: "params: "} {
		if _, err := w.Execute(t.Context(), local, request("look_up", ofAnn, params)); !strings.Contains(
			refusal(t, err), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	for _, r := range []kernel.Request{request("", ofAnn, ""), request(strings.Repeat("x", 300), ofAnn, ""),
		request("look_up", ofAnn, "", make([]string, 40)...)} {
		if _, err := w.Execute(t.Context(), local, r); refusal(t, err) == "" || len(w.taken()) != 0 {
			t.Errorf("%.20q: %v", r.Action, err)
		}
	}
}

// K-041, T39: file_read, file_write and file_list are the agent's own files.
func TestFilesOfAnAgent(t *testing.T) {
	w := newWorld(t)
	a, b := w.register(t, "ann", agents.Untrusted), w.register(t, "ann", agents.Untrusted)
	do := func(agent, action, params string, policies ...string) (kernel.Executed, error) {
		t.Helper()
		return w.Execute(t.Context(), local, request(action, agent, params, policies...))
	}
	if got, err := do(a, "file_write",
		`{"path":"notes/a.txt","content":"mail ann.smith@northwind-mail.com"}`); err != nil ||
		got.Status != "executed" {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := do(a, "file_read", `{"path":"notes/a.txt"}`); err != nil ||
		!strings.Contains(string(got.Output), "ann.smith@") {
		t.Errorf("%s, %v", got.Output, err)
	}
	if got, err := do(a, "file_read", `{"path":"notes/a.txt"}`, "no_pii", "read_only"); err != nil ||
		strings.Contains(string(got.Output), "ann.smith@") ||
		!strings.Contains(string(got.Output), "mail [redacted:email]") {
		t.Errorf("no_pii lets personal data out: %s, %v", got.Output, err)
	}
	if got, err := do(a, "file_list", `{}`); err != nil ||
		!strings.Contains(string(got.Output), `"path":"notes/a.txt","bytes":33`) {
		t.Errorf("%s, %v", got.Output, err)
	}
	if got, err := do(b, "file_list", ``); err != nil || string(got.Output) != `{"files":[]}` {
		t.Errorf("another agent sees %s, %v", got.Output, err)
	}
	// Issue 24: a file is deleted, by its agent alone, and not under a policy against destruction.
	for _, policy := range []string{"read_only", "no_destruction"} {
		if _, err := do(a, "file_delete", `{"path":"notes/a.txt"}`, policy); refusal(t, err) == "" {
			t.Errorf("%s lets a file be deleted", policy)
		}
	}
	for _, c := range []struct{ agent, path, want string }{{b, "notes/a.txt", "failed"}, {a, "notes/a.txt", "executed"},
		{a, "notes/a.txt", "failed"}, {a, "../a", "failed"}} {
		if got, err := do(c.agent, "file_delete", `{"path":"`+c.path+`"}`); err != nil || got.Status != c.want {
			t.Errorf("deleting %s of %s: got %+v, %v; want %s", c.path, c.agent, got, err, c.want)
		}
	}
	for params, want := range map[string]string{
		`{"path":"../a"}`: "InvalidPath", `{"path":"a\u0000b"}`: "InvalidPath", `{"path":"none"}`: "NotFound",
		`{"path":"/etc/passwd"}`: "InvalidPath",
	} {
		if got, err := do(a, "file_read", params); err != nil || got.Status != "failed" || got.Error.Type != want {
			t.Errorf("%s: %+v, %v", params, got, err)
		}
	}
	if got, err := do(a, "file_write", `{"path":"b","content":"`+strings.Repeat("x", 2000)+`"}`); err != nil ||
		got.Error == nil || got.Error.Type != "LimitExceeded" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, params := range []string{`{}`, `{"path":1,"content":""}`, `{"path":"a","content":"","mode":"777"}`,
		`{"path":"a"}`} {
		if _, err := do(a, "file_write", params); refusal(t, err) == "" {
			t.Errorf("%s is written", params)
		}
	}
	if _, err := do(a, "execute_code", `{"language":"python","code":"result = 1"}`); err != nil ||
		!contains(w.taken(), "agent python result = 1") {
		t.Errorf("no run was made: %v", err)
	}
}

// K-021: an action that cannot be recorded does not happen.
func TestWithoutALogNothingHappens(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	var no *kernel.Refusal
	if _, err := w.Execute(t.Context(), local, request("look_up", id, `{}`)); err == nil || errors.As(err, &no) ||
		len(w.taken()) != 0 {
		t.Errorf("%v", err)
	}
}

// A refused slash and a refused action are recorded as refused, with the reason (issue 24).
func TestRefusalsAreRecorded(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	for name, sl := range map[string]iatp.Slash{
		"of an unknown agent": {Agent: "none", Reason: "r"}, "without a reason": {Agent: id},
		"with another word": {Agent: id, Reason: "r", Severity: "worst"},
	} {
		if _, err := w.Slash(t.Context(), local, sl); refusal(t, err) == "" {
			t.Errorf("a slash %s: got %v, want a refusal", name, err)
		}
	}
	if _, err := w.Execute(t.Context(), local, request("no_such_action", id, `{}`)); refusal(t, err) == "" {
		t.Errorf("an unknown action: got %v, want a refusal", err)
	}
	for _, r := range []kernel.Request{request("file_write", id, `{"path":"a"}`), request("look_up", id, `[]`),
		request(" ", id, `{}`), request("look_up", id, `{"a":1,"a":2}`),
		request("file_delete", id, `{"path":"a"}`, "no_destruction")} {
		if _, err := w.Execute(t.Context(), local, r); refusal(t, err) == "" {
			t.Errorf("%+v: got %v, want a refusal", r, err)
		}
	}
	log, err := w.Log(t.Context(), local, kernel.LogQuery{Limit: 100, Type: "blocked"})
	if err != nil || log.Total != 9 {
		t.Fatalf("got %+v, %v, want nine refusals", log, err)
	}
	// The agent's activity has the refusals with their reasons.
	var reasons []string
	activity, err := agents.Activity(w.logDir, id, audit.Period{}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range activity {
		if entry.Decision == "DENIED" && entry.ActionType == "kernel_execute" {
			reasons = append(reasons, entry.Reason)
		}
	}
	for _, want := range []string{"is not configured", "file_write needs params.content", "params is not an object",
		"action must have 1 to", "params: ", "no_destruction policy"} {
		if !strings.Contains(strings.Join(reasons, "\n"), want) {
			t.Errorf("got the activity %q, want the reason %q", reasons, want)
		}
	}
	var details []string
	for _, entry := range log.Logs {
		details = append(details, entry.Detail)
	}
	for _, want := range []string{"is unknown", "slash_reason is required", `slash_severity "worst"`,
		"is not configured"} {
		if !strings.Contains(strings.Join(details, "\n"), want) {
			t.Errorf("got %q, want the reason %q", details, want)
		}
	}
}

// Refusals of the kernel have separate records, so an account that causes too many of them waits for
// its turn. Its other calls are not refused, and other accounts do not wait (issue 23).
func TestRefusalsDelayFurtherCallsOfTheirAccount(t *testing.T) {
	w := newWorld(t)
	id := w.register(t, "ann", agents.Trusted)
	ended, end := context.WithCancel(t.Context())
	end()
	refusals := 0
	for ; w.AwaitTurn(ended, bob) == nil; refusals++ {
		if refusals == 5000 {
			t.Fatal("calls do not wait after 5,000 refusals")
		}
		if _, err := w.Execute(t.Context(), bob, request("look_up", id, `{}`)); refusal(t, err) == "" {
			t.Fatal("another caller acts as the agent")
		}
	}
	if err := w.AwaitTurn(ended, local); err != nil {
		t.Errorf("another account waits: %v", err)
	}
	log, err := w.Log(t.Context(), local, kernel.LogQuery{Limit: 1, Type: "blocked"})
	if err != nil || log.Total != refusals {
		t.Errorf("got %+v, %v, want %d refusals in the log", log, err, refusals)
	}
}
