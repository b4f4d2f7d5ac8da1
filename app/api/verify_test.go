package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/verifytest"
)

// asking is a fake of api.Verifications.
type asking func(ctx context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error)

func (a asking) Verify(ctx context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error) {
	return a(ctx, who, r)
}

func realEngines(t *testing.T) asking {
	engines := verifytest.Start(t)
	return func(ctx context.Context, _ caller.Caller, r verify.Request) (verify.Verdict, error) {
		return engines.Verify(ctx, r)
	}
}

// A picture of one white pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg=="

// Each question that the SDK's clients ask, with the body that they send.
func TestVerdictsOverHTTP(t *testing.T) {
	if raw, err := base64.StdEncoding.DecodeString(pixel); err != nil || len(raw) == 0 {
		t.Fatal(err)
	}
	s := serveWith(t, realEngines(t))
	for _, test := range []struct{ path, body, status string }{
		{"natural_language", `{"query": "Is 2+2=4?"}`, "VERIFIED"},
		{"math", `{"expression": "x**2 + 2*x + 1 = (x+1)**2"}`, "VERIFIED"},
		{"math", `{"expression": "2+2=5"}`, "ERROR"},
		{"logic", `{"query": "(AND (GT x 5) (LT y 10))"}`, "VERIFIED"},
		{"code", `{"code": "import os\nos.system('ls')", "language": "python"}`, "BLOCKED"},
		{"code", `{"code": "print(1)"}`, "VERIFIED"},
		{"sql", `{"query": "SELECT a FROM t", "schema_ddl": "CREATE TABLE t (a INT)", "dialect": "postgresql"}`,
			"VERIFIED"},
		{"sql", `{"query": "SELECT a FROM t", "schema_ddl": null, "dialect": "postgresql", "allowed_tables": ["t"], ` +
			`"allow_mutations": false}`, ""},
		{"fact", `{"claim": "The sky is blue.", "context": "The sky is blue."}`, "VERIFIED"},
		{"stats", `{"query": "The average salary is above 1", "csv_text": "salary\n2\n4\n"}`, "VERIFIED"},
		{"image", `{"claim": "The image is 1x1", "image_base64": "` + pixel + `"}`, "VERIFIED"},
		{"image", `{"claim": "The image is 2x1", "image_base64": "` + pixel + `"}`, "ERROR"},
		{"image", `{"claim": "The image is 1x1", "image_base64": "no base64!"}`, "INCONCLUSIVE"},
		{"consensus", `{"query": "2+2=4", "mode": "single", "min_confidence": 0.8}`, "VERIFIED"},
		{"batch", `{"items": [{"query": "2+2=4", "type": "math"}, {"query": "2+2=5", "type": "math"}]}`, ""},
	} {
		status, verdict := s.do("asker", "POST", "/v1/verify/"+test.path, test.body)
		if status != http.StatusOK || test.status != "" && verdict["status"] != test.status {
			t.Errorf("%s %s: %d %v, want %s", test.path, test.body, status, verdict, test.status)
		}
		if verdict["verified"] != (verdict["status"] == "VERIFIED") {
			t.Errorf("%s: %v contradicts itself", test.path, verdict)
		}
	}
}

func TestWhoMayAskWhat(t *testing.T) {
	s := serveWith(t, realEngines(t))
	s.register("ann", "calculator") // may ask math, logic and sql
	suspended := s.register("ann", "suspended")
	if status, body := s.do("ann", "POST", "/v1/agents/"+suspended+"/status",
		`{"status": "suspended"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	var id string
	free := strings.Replace(registration, `"allowed_engines": ["math", "logic", "sql"], `, "", 1)
	if status, agent := s.do("ann", "POST", "/v1/agents", free); status != http.StatusCreated {
		t.Fatalf("%d %v", status, agent)
	} else {
		s.tokens["free"], id = agent["agent_token"].(string), agent["agent_id"].(string)
	}
	const math, query = `{"expression": "2+2=4"}`, `{"query": "2+2=4"}`
	for _, test := range []struct {
		as, path, body string
		want           int
	}{
		{"", "math", math, 401}, {"stranger", "math", math, 401}, {"manager", "math", math, 403},
		{"asker", "math", math, 200}, {"runner", "math", math, 200}, {"admin", "math", math, 200},
		{"calculator", "math", math, 200}, {"calculator", "fact", `{"claim": "a", "context": "a"}`, 403},
		{"calculator", "natural_language", query, 403}, {"calculator", "batch", `{"items": []}`, 403},
		{"free", "natural_language", query, 200}, {"suspended", "math", math, 403},
	} {
		if status, body := s.do(test.as, "POST", "/v1/verify/"+test.path, test.body); status != test.want {
			t.Errorf("%s %s: %d %v, want %d", test.as, test.path, status, body, test.want)
		}
	}
	s.do("ann", "POST", "/v1/agents/"+id+"/status", `{"status": "suspended"}`)
	if status, body := s.do("free", "POST", "/v1/verify/math", math); status != http.StatusForbidden {
		t.Errorf("a suspended agent: %d %v", status, body)
	}
}

func TestQuestionsThatAreNone(t *testing.T) {
	s := serveWith(t, asking(func(context.Context, caller.Caller, verify.Request) (verify.Verdict, error) {
		t.Error("an engine was asked")
		return verify.Verdict{}, errors.New("asked")
	}))
	for _, test := range []struct {
		path, body string
		want       int
	}{
		{"math", ``, 422}, {"math", `[]`, 422}, {"math", `{`, 422}, {"math", `{}`, 422},
		{"math", `{"expression": null}`, 422}, {"math", `{"expression": 7}`, 422},
		{"math", `{"expression": "1", "seconds": 9999}`, 422}, {"math", `{"expression": "1", "expression": "2"}`, 422},
		{"stats", `{"query": "q", "file_path": "/etc/passwd"}`, 422},
		{"image", `{"claim": "c", "image_path": "/etc/passwd"}`, 422},
		{"sql", `{"query": "q", "allowed_tables": "t"}`, 422},
		{"consensus", `{"query": "q", "min_confidence": "high"}`, 422},
		{"batch", `{"items": {}}`, 422}, {"batch", `{"items": [1]}`, 422},
		{"math", `{"expression": "` + strings.Repeat("1", 13<<20) + `"}`, 413},
		{"nothing", `{}`, 404},
	} {
		if status, body := s.do("asker", "POST", "/v1/verify/"+test.path, test.body); status != test.want {
			t.Errorf("%s %.60s: %d %v, want %d", test.path, test.body, status, body, test.want)
		}
	}
	if status, _ := s.do("asker", "GET", "/v1/verify/math", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want 405", status)
	}
}

// hinted is an error with a hint.
type hinted struct{ error }

func (hinted) Hint() string { return "run `airlock images build verify`" }

// A question without a verdict is answered with 503, with Retry-After if a retry can succeed.
func TestWhereThereIsNoVerdict(t *testing.T) {
	for _, test := range []struct {
		err        error
		code, says string
		retry      string
	}{
		{verify.ErrBusy, "busy", "send it again", "1"}, {verify.ErrClosed, "unavailable", "ending", "1"},
		{fmt.Errorf("opening: %w", hinted{errors.New("not built: /home/ann/.airlock")}), "unavailable",
			"airlock images build verify", ""},
		{errors.New("the sandbox /run/x failed"), "unavailable", "try again", ""},
	} {
		s := serveWith(t, asking(func(context.Context, caller.Caller, verify.Request) (verify.Verdict, error) {
			return verify.Verdict{}, test.err
		}))
		response, raw := s.ask("asker", "math", `{"expression": "1"}`)
		var told struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(raw, &told); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != test.retry ||
			told.Error.Code != test.code ||
			!strings.Contains(told.Error.Message, test.says) || strings.Contains(told.Error.Message, "/") &&
			test.code != "unavailable" {
			t.Errorf("%v: %d %q %s", test.err, response.StatusCode, response.Header.Get("Retry-After"), raw)
		}
		if strings.Contains(string(raw), ".airlock") || strings.Contains(string(raw), "/run/x") {
			t.Errorf("%v: %s tells of this machine", test.err, raw)
		}
	}
	if status, _ := serve(t).do("asker", "POST", "/v1/verify/math",
		`{"expression": "1"}`); status != http.StatusServiceUnavailable {
		t.Errorf("without engines: %d", status)
	}
}

// ask asks an engine and returns the answer without decoding it.
func (s *served) ask(as, path, body string) (*http.Response, []byte) {
	s.Helper()
	return s.send(as, "POST", "/v1/verify/"+path, body)
}

// A caller cannot occupy all engines: its ninth concurrent question is answered at once, and the
// question of another caller continues.
func TestACallerHasItsShareOfTheEngines(t *testing.T) {
	begun, gate := make(chan string, 100), make(chan struct{})
	s := serveWith(t, asking(func(_ context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error) {
		begun <- who.Principal
		<-gate
		return verify.Verdict{Status: verify.Verified,
				Body: json.RawMessage(
					`{"verified":true,"status":"VERIFIED","engine":"math","message":"","evidence":{}}`)},
			nil
	}))
	var asked sync.WaitGroup
	defer asked.Wait()
	defer close(gate)
	for range 8 {
		asked.Go(func() { s.ask("asker", "math", `{"expression": "1"}`) })
	}
	for range 8 {
		<-begun
	}
	response, raw := s.ask("asker", "math", `{"expression": "1"}`)
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
		t.Errorf("the ninth: %d %s, want 429 with Retry-After", response.StatusCode, raw)
	}
	asked.Go(func() { s.ask("runner", "math", `{"expression": "1"}`) })
	if who := <-begun; who != "runner" {
		t.Errorf("got a question of %s, want the other caller's", who)
	}
}

// Issue 25: the limit of questions was kept for each agent, so that eight agents of one caller could
// occupy all engines. They have one account, which differs from their owner's.
func TestAgentsOfOneCallerShareTheEngines(t *testing.T) {
	begun, gate := make(chan string, 100), make(chan struct{})
	s := serveWith(t, asking(func(_ context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error) {
		begun <- who.Principal
		<-gate
		return verify.Verdict{Status: verify.Verified, Body: json.RawMessage(
			`{"verified":true,"status":"VERIFIED","engine":"math","message":"","evidence":{}}`)}, nil
	}))
	for n := range 8 {
		status, agent := s.do("ann", "POST", "/v1/agents", `{"name": "a", "type": "supervised"}`)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, agent)
		}
		s.tokens[fmt.Sprint("agent ", n)] = agent["agent_token"].(string)
	}
	const math = `{"expression": "2+2=4"}`
	var asked sync.WaitGroup
	defer asked.Wait()
	defer close(gate)
	for n := range 8 {
		asked.Go(func() { s.ask(fmt.Sprint("agent ", n), "math", math) })
	}
	for range 8 {
		<-begun
	}
	for n := range 8 {
		response, raw := s.ask(fmt.Sprint("agent ", n), "math", math)
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
			t.Errorf("agent %d: %d %s, want 429 with Retry-After", n, response.StatusCode, raw)
		}
	}
	asked.Go(func() { s.ask("asker", "math", math) })
	if who := <-begun; who != "asker" {
		t.Errorf("got a question of %s, want that of another caller", who)
	}
}

// A question of an agent is debited from its budget once, also if it is refused. A question
// that reached no engine is free. Other callers have no budget.
func TestQuestionsOfAgentsAreDebited(t *testing.T) {
	busy := false
	s := serveWith(t, asking(func(context.Context, caller.Caller, verify.Request) (verify.Verdict, error) {
		if busy {
			return verify.Verdict{}, verify.ErrBusy
		}
		return verify.Verdict{Status: verify.Verified,
				Body: json.RawMessage(
					`{"verified":true,"status":"VERIFIED","engine":"math","message":"","evidence":{}}`)},
			nil
	}))
	status, agent := s.do("ann", "POST", "/v1/agents",
		`{"name": "a", "type": "supervised", "permissions": {"blocked_tools": ["verify_fact"]},
		"budget": {"max_requests_per_hour": 5}}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, agent)
	}
	id := agent["agent_id"].(string)
	s.tokens["agent"] = agent["agent_token"].(string)
	const math = `{"expression": "2+2=4"}`
	for i, test := range []struct {
		path, body string
		busy       bool
		want       int
		counted    float64
	}{
		{"math", math, false, 200, 1}, {"math", `{}`, false, 422, 1}, {"math", math, true, 503, 2},
		{"batch", `{"items": [{"query": "a", "type": "FACT"}]}`, false, 403, 3},
		{"batch", `{"items": [{"query": "a", "type": 7}, {"query": "a"}]}`, false, 200, 4},
		{"fact", `{"claim": "a", "context": "a"}`, false, 403, 5}, {"math", math, false, 429, 5},
	} {
		busy = test.busy
		response, raw := s.ask("agent", test.path, test.body)
		if response.StatusCode != test.want {
			t.Errorf("%d: got %d %s, want %d", i, response.StatusCode, raw, test.want)
		}
		if response.StatusCode == http.StatusTooManyRequests &&
			(response.Header.Get("Retry-After") == "" || !strings.Contains(string(raw), "QWED-AGENT-BUDGET-002")) {
			t.Errorf("%d: %q %s, want when to come again, and why", i, response.Header.Get("Retry-After"), raw)
		}
		_, budget := s.do("ann", "GET", "/v1/agents/"+id+"/budget", "")
		if got := budget["requests"].(map[string]any)["current_hour"]; got != test.counted {
			t.Errorf("%d: got %v requests, want %v", i, got, test.counted)
		}
	}
	if status, _ := s.do("asker", "POST", "/v1/verify/math", math); status != http.StatusOK {
		t.Errorf("who is no agent: %d", status)
	}
	_, activity := s.do("agent", "GET", "/v1/agents/"+id+"/activity", "")
	if got := len(activity["activity"].([]any)); got != 6 {
		t.Errorf("got %d attempts in the activity, want 6: %v", got, activity)
	}
}
