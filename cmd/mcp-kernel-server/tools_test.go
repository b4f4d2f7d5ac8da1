package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// K-018 to K-021, T11, T39: actions are really carried out, blocked ones are not, and all of it is in the log.
func TestActionsThroughTheRealProgram(t *testing.T) {
	w := newWorld(t)
	id, _ := w.register("trusted")
	h := w.stdio()
	execute := func(action, params, policies string) (string, bool) {
		t.Helper()
		return h.call("kernel_execute", fmt.Sprintf(
			`{"action":%q,"agent_id":%q,"params":%s,"policies":%s,"context":{"history":[]}}`, action, id, params,
			policies))
	}
	text, isError := execute("database_query", `{"query":"SELECT 1"}`, `["read_only"]`)
	want := `{"status":"executed","action":"database_query","result":"Action 'database_query' executed successfully",` +
		`"params_received":["query"],"output":{"rows":["row of SELECT 1",`
	if isError || !strings.HasPrefix(text, want) || w.lines() != "SELECT 1\n" {
		t.Errorf("%s, the database got %q", text, w.lines())
	}
	if text, _ := execute("database_query", `{"query":"SELECT 2"}`, `["no_pii"]`); strings.Contains(
		text, "northwind") || !strings.Contains(text, "row of SELECT 2") {
		t.Errorf("no_pii: %s", text)
	}
	for _, query := range []string{"INSERT INTO t VALUES (1)", " UPDATE t SET a = 1", "DELETE FROM t",
		"WITH x AS (SELECT 1) DELETE FROM t", "DROP TABLE t"} {
		text, isError := execute("database_query", fmt.Sprintf(`{"query":%q}`, query), `["read_only"]`)
		if !isError || text != `{"error":"SIGKILL: Policy violation - Write query blocked by read_only policy"}` {
			t.Errorf("%s: %v, %s", query, isError, text)
		}
	}
	for _, c := range []struct{ action, params, policies, want string }{
		{"database_query", `{"query":"SELECT 1"}`, `["office_hours"]`,
			`{"error":"SIGKILL: Policy violation - Closed, blocked by office_hours policy"}`},
		{"database_query", `{"query":"SELECT 1"}`, `["strict"]`, `{"error":"Unknown policy \"strict\"`},
		{"send_money", `{}`, `[]`, `{"error":"Action \"send_money\" is not configured`},
		{"database_query", `{"sql":"SELECT 1"}`, `[]`,
			`{"status":"failed","action":"database_query","params_received":["sql"],`},
	} {
		if text, isError := execute(c.action, c.params, c.policies); !isError || !strings.HasPrefix(text, c.want) {
			t.Errorf("%+v: %s", c, text)
		}
	}
	if text, isError := execute("execute_code", `{"language":"python","code":"result = 6 * 7"}`, `[]`); isError ||
		!strings.Contains(text, `"output":42`) || !strings.Contains(text, `"run_id":"run_`) {
		t.Errorf("a run: %s", text)
	}
	if w.lines() != "SELECT 1\nSELECT 2\n" {
		t.Errorf("the database got %q", w.lines())
	}
	if text, isError := h.call("kernel_execute", `{"action":"file_list","agent_id":"agent-001"}`); !isError ||
		!strings.Contains(text, `Agent \"agent-001\" is not registered`) {
		t.Errorf("an unregistered agent: %s", text)
	}

	var log struct {
		Logs []struct {
			Type    string
			AgentID string `json:"agent_id"`
			Action  string
			Server  string
		}
		Returned, Total int
		Stats           struct {
			Blocked int `json:"blocked_total"`
			Allowed int `json:"allowed_total"`
		}
	}
	h.answer(&log, "get_audit_log", fmt.Sprintf(`{"limit":100,"filter":{"agent_id":%q}}`, id))
	kernel := map[string]int{}
	for _, entry := range log.Logs {
		if entry.Action == "kernel_execute" && entry.AgentID == id {
			kernel[entry.Type]++
		}
	}
	// K-038: 2 queries, 1 wrong parameter and 1 run were allowed, 5 writes and 3 others blocked.
	if kernel["allowed"] != 4 || kernel["blocked"] != 8 || log.Total != log.Returned ||
		log.Stats.Allowed+log.Stats.Blocked != log.Total {
		t.Errorf("%v, %+v", kernel, log)
	}
	h.answer(&log, "get_audit_log",
		fmt.Sprintf(`{"filter":{"agent_id":%q,"type":"blocked","since":"2020-01-01T00:00:00+02:00"}}`, id))
	if log.Total != log.Stats.Blocked || log.Logs[0].Type != "blocked" {
		t.Errorf("%+v", log)
	}
	if out := w.airlock("audit", "verify"); !strings.Contains(out, "record") {
		t.Errorf("%s", out)
	}
}

// K-021, T39: signals from another process stop what the agent does, and each later call meets them.
func TestSignalsFromAnotherProcess(t *testing.T) {
	w := newWorld(t)
	id, _ := w.register("trusted")
	// Over HTTP, because a host on stdio would be this test, which may not resume an agent.
	h := w.overHTTP(w.listen(), strings.TrimSpace(w.airlock("tokens", "create", "x", "--scope", "admin")))
	list := fmt.Sprintf(`{"action":"file_list","agent_id":%q}`, id)
	if text, isError := h.call("kernel_execute", list); isError {
		t.Fatal(text)
	}
	over := make(chan string, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		res, err := h.CallTool(t.Context(), &mcp.CallToolParams{Name: "kernel_execute", Arguments: json.RawMessage(
			fmt.Sprintf(`{"action":"execute_code","agent_id":%q,"params":{"language":"python","code":"import `+
				`time\nfrom servers import db\nawait db.query({'query': 'the run has `+
				`begun'})\ntime.sleep(25)\nresult = 'not stopped'"}}`, id))})
		if err != nil {
			over <- err.Error()
			return
		}
		over <- res.Content[0].(*mcp.TextContent).Text
	}()
	<-started
	for !strings.Contains(w.lines(), "the run has begun") {
		select {
		case text := <-over:
			t.Fatalf("the run ended: %s", text)
		case <-t.Context().Done():
			t.Fatal("the run did not begin")
		default:
		}
	}
	w.airlock("agents", "signal", id, "SIGSTOP")
	if text := <-over; strings.Contains(text, "not stopped") || !strings.Contains(text, `"status":"failed"`) {
		t.Errorf("the run: %s", text)
	}
	for _, c := range []struct{ signal, want string }{
		{"SIGSTOP", `{"error":"SIGSTOP: Agent is stopped until it gets SIGCONT"}`}, {"SIGCONT", `"status":"executed"`},
		{"SIGKILL", `{"error":"SIGKILL: Agent was killed"}`},
	} {
		w.airlock("agents", "signal", id, c.signal)
		if text, _ := h.call("kernel_execute", list); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.signal, text)
		}
	}
	if text, isError := h.call("iatp_sign", fmt.Sprintf(`{"content":"x","agent_id":%q}`, id)); !isError ||
		!strings.Contains(text, "the agent is killed") {
		t.Errorf("a killed agent signs: %s", text)
	}
}

// K-006 to K-009, T42: the engine judges in a sandbox.
func TestCodeSafetyInARealSandbox(t *testing.T) {
	h := newWorld(t).stdio()
	judge := func(arguments string) (text string, isError bool) {
		t.Helper()
		testenv.Await(t, "the first sandbox", func() bool { // on a busy machine it may take longer than a caller waits
			text, isError = h.call("verify_code_safety", arguments)
			return !strings.Contains(text, "the engines are busy; try it again later")
		})
		return text, isError
	}
	text, isError := judge(`{"code":"DROP TABLE users;","language":"sql"}`)
	want := `{"safe":false,"violations":[{"rule":"drop_table","severity":"critical","message":"Destructive SQL: DROP ` +
		`operation detected","alternative":"Consider using soft delete or archiving instead of DROP"`
	if isError || !strings.HasPrefix(text, want) ||
		!strings.HasSuffix(text,
			`"blocked_reason":"Destructive SQL: DROP operation detected","alternative":"Consider using soft delete `+
				`or archiving instead of DROP"}`) {
		t.Errorf("%s", text)
	}
	for _, c := range []struct{ code, language, want string }{
		{"x=1", "python", `{"safe":true,"violations":[],"warnings":[],"language":"python","code_length":3,` +
			`"rules_checked":`},
		{"# eval(x)", "python", `{"safe":true,`}, {"eval(x)", "javascript", `{"safe":false,`},
		{"x", "cobol", `{"safe":false,"violations":[{"rule":"unsupported_language"`},
	} {
		raw, _ := json.Marshal(map[string]any{"code": c.code, "language": c.language,
			"context": map[string]string{"path": "a.py"}})
		if text, isError := judge(string(raw)); isError || !strings.HasPrefix(text, c.want) {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

// K-010 to K-017: real models are asked, over HTTP.
func TestModelsThroughTheRealProgram(t *testing.T) {
	w := newWorld(t)
	h := w.stdio()
	w.say(map[string]string{"gpt-4": "VERDICT: TRUE\nYes.", "claude-sonnet-4": "VERDICT: TRUE\nYes.",
		"gemini-3": "VERDICT: TRUE\nYes."})
	text, isError := h.call("cmvk_verify", `{"claim":"two and two are four"}`)
	want := `{"verified":true,"confidence":1,"drift_score":0,"avg_drift":0,"models_checked":["claude-sonnet-4",` +
		`"gemini-pro","gpt-4"],"disagreement_detected":false,"consensus_method":"drift_threshold",` +
		`"interpretation":"Strong consensus across all models. High confidence in claim validity.",`
	if isError || !strings.HasPrefix(text, want) {
		t.Errorf("%s", text)
	}
	if text, _ := h.call("cmvk_verify", `{"claim":"x","models":["gpt-4","gemini-pro"]}`); !strings.Contains(
		text, `"models_checked":["gpt-4","gemini-pro"]`) {
		t.Errorf("K-014: %s", text)
	}
	w.say(map[string]string{"gpt-4": "VERDICT: TRUE"})
	if text, isError := h.call("cmvk_verify", `{"claim":"x"}`); !isError ||
		!strings.HasPrefix(text, `{"error":"No verdict: it takes the answers of two models, and 1 answered`) {
		t.Errorf("%s", text)
	}
	for _, arguments := range []string{`{"claim":"x","threshold":1.5}`, `{"claim":"x","threshold":"0.5"}`, `{}`,
		`{"claim":"x","model":["gpt-4"]}`, `{"claim":"x","claim":"y"}`} {
		if text, isError := h.call("cmvk_verify", arguments); !isError ||
			!strings.HasPrefix(text, `{"error":"Invalid arguments: `) {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	w.say(map[string]string{"gpt-4": `{"issues":[]}`, "gemini-3": `{"issues":[]}`,
		"claude-sonnet-4": `{"issues":[{"category":"security","severity":"high","issue":"eval() usage is dangerous",` +
			`"fix":"Use JSON.parse() or ast.literal_eval() for data parsing"}]}`})
	if text, isError := h.call("cmvk_review", `{"code":"eval(x)","focus":["security"]}`); isError ||
		!strings.HasPrefix(text, `{"consensus":0.67,`) ||
		!strings.Contains(text,
			`"recommendation":"Based on multi-model review:\n1. eval() usage is dangerous: Use JSON.parse()`) {
		t.Errorf("%s", text)
	}
	var log struct {
		Total int
		Logs  []struct{ Action, Detail string }
	}
	h.answer(&log, "get_audit_log", `{"filter":{"type":"cmvk_review"}}`)
	if log.Total != 1 || !strings.Contains(log.Logs[0].Detail, "gpt-4 at 127.0.0.1") {
		t.Errorf("%+v", log)
	}
}

// K-039 to K-044: resources are the agents' files and the log, and nothing else.
func TestResources(t *testing.T) {
	w := newWorld(t)
	a, _ := w.register("supervised")
	b, _ := w.register("supervised")
	h := w.stdio()
	if text, isError := h.call("kernel_execute", fmt.Sprintf(
		`{"action":"file_write","agent_id":%q,"params":{"path":"notes/today.md","content":"of a"}}`, a)); isError {
		t.Fatal(text)
	}
	read := func(uri string) (string, error) {
		res, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return "", err
		}
		if len(res.Contents) != 1 || res.Contents[0].URI != uri {
			t.Errorf("%s: %+v", uri, res.Contents)
		}
		return res.Contents[0].MIMEType + " " + res.Contents[0].Text, nil
	}
	for uri, want := range map[string]string{
		"vfs://":                               `"agent_id":"` + a + `","files":1,"bytes":4`,
		"vfs://" + a + "/mem/":                 `"path":"notes/today.md","bytes":4`,
		"vfs://" + a + "/mem/notes/today.md":   "text/plain of a",
		"vfs://" + a + "/mem/notes%2Ftoday.md": "text/plain of a",
		"vfs://" + b + "/mem/":                 `"files":[]`,
		"vfs://" + a + "/policy/": `"files":["agents.cedar","kernel.cedar","registration.json",` +
			`"own.cedar"]`,
		"vfs://" + a + "/policy/own.cedar":         "office_hours",
		"vfs://" + a + "/policy/kernel.cedar":      "read_only",
		"vfs://" + a + "/policy/registration.json": `"trust_level": 1`,
		"audit://":              `"action":"kernel_execute"`,
		"audit://" + a + "/log": `"agent_id":"` + a + `","action":"kernel_execute"`,
		"audit://" + b + "/log": `"total":0`,
	} {
		if text, err := read(uri); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v; want %s", uri, text, err, want)
		}
	}
	for _, uri := range []string{
		"vfs://" + a, "vfs://" + a + "/", "vfs://" + b + "/mem/notes/today.md",
		"vfs://" + a + "/mem/../../" + b + "/mem/x", "vfs://" + a + "/mem/%2e%2e/x",
		"vfs://" + a + "/mem/notes/today.md%00", "vfs://" + a + "/mem/none", "vfs://" + a + "/other/x",
		"vfs://" + a + "/policy/../mem/notes/today.md", "vfs://" + a + "/mem/notes/today.md?x",
		"vfs://unknown/mem/x", "audit://unknown/log", "audit://%00%1b/log", "audit://" + a, "audit://" + a + "/log/x",
		"audit://unknown/other", "file:///etc/passwd",
		"vfs:", "", "vfs:///mem/x", "VFS://" + a + "/mem/notes/today.md",
	} {
		text, err := read(uri)
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != -32002 && wire.Code != jsonrpc.CodeInvalidParams { // by revision
			t.Errorf("%q: %s, %v; want that there is none", uri, text, err)
		}
	}
}
