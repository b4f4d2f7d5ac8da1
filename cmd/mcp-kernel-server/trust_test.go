package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// envelope is what iatp_sign hands out.
type envelope struct {
	Payload     []byte `json:"payload"`
	PayloadType string `json:"payloadType"`
}

// get reads an address without any credential.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// K-022, K-023, T41: a signature of the real program verifies with the key that it publishes.
func TestSignaturesVerifyWithThePublishedKeys(t *testing.T) {
	w := newWorld(t)
	id, token := w.register("supervised")
	url := w.listen()
	h := w.overHTTP(url, token)
	var signed struct {
		Signature, Timestamp string
		Agent                string   `json:"agent_id"`
		Capabilities         []string `json:"capabilities"`
		Hash                 string   `json:"content_hash"`
		Version              string   `json:"protocol_version"`
		Key                  string   `json:"key_id"`
		Envelope             envelope
	}
	if h.answer(&signed, "iatp_sign", fmt.Sprintf(
		`{"content":"hello","agent_id":%q,"capabilities":["reversible"],"metadata":{"to":"agent-002"}}`, id)) {
		t.Fatalf("%+v", signed)
	}
	if signed.Agent != id || signed.Version != "iatp-1.0" ||
		signed.Hash != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" ||
		fmt.Sprint(signed.Capabilities) != "[reversible]" {
		t.Errorf("%+v", signed)
	}
	for _, part := range []string{`"metadata":{"to":"agent-002"}`, `"timestamp":"` + signed.Timestamp + `"`, id,
		signed.Hash, "reversible"} {
		if !strings.Contains(string(signed.Envelope.Payload), part) {
			t.Errorf("%s is not signed: %s", part, signed.Envelope.Payload)
		}
	}
	status, body := get(t, strings.TrimSuffix(url, "/mcp")+"/.well-known/agent-keys?agent_id="+id)
	var set struct {
		Keys []struct {
			Kid, Kty, Crv, X, Alg string
			Agent                 string `json:"agent_id"`
		}
	}
	if err := json.Unmarshal(body, &set); err != nil || status != http.StatusOK || len(set.Keys) != 1 ||
		set.Keys[0].Kid != signed.Key || set.Keys[0].Agent != id || bytes.Contains(body, []byte(`"d"`)) {
		t.Fatalf("%d, %s, %v", status, body, err)
	}
	public, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := hex.DecodeString(signed.Signature)
	e := signed.Envelope
	if err != nil || !ed25519.Verify(public, fmt.Appendf(
		nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload), sig) {
		t.Errorf("the signature does not verify: %v", err)
	}
	published := func(why string, want bool) {
		t.Helper()
		_, body := get(t, strings.TrimSuffix(url, "/mcp")+"/.well-known/agent-keys")
		if empty := bytes.Contains(body, []byte(`{"keys":[]}`)); empty == want {
			t.Errorf("%s: got the keys %s", why, body)
		}
	}
	w.airlock("agents", "suspend", id)
	published("the agent is suspended", false)
	w.airlock("agents", "resume", id)
	published("the agent is active", true)
	w.airlock("agents", "keys", id, "--revoke="+signed.Key)
	published("the key is revoked", false)
}

// K-024 to K-036, T40, T41
func TestTrustThroughTheRealProgram(t *testing.T) {
	w := newWorld(t)
	id, _ := w.register("supervised")
	w.airlock("agents", "manifest", id, "--scope", "data:read", "--scope", "data:write", "--retention", "ephemeral",
		"--reversibility", "full")
	h := w.stdio()
	ask := func(more string) string {
		t.Helper()
		text, isError := h.call("iatp_verify", fmt.Sprintf(`{"remote_agent_id":%q%s}`, id, more))
		if isError {
			t.Errorf("%s: %s", more, text)
		}
		return text
	}
	want := fmt.Sprintf(
		`{"verified":true,"remote_agent_id":%q,"trust_score":8,"trust_level":"standard","scopes":["data:read",`+
			`"data:write"],"attestation_valid":true,"policy_compatible":true}`, id)
	if got := ask(`,"required_scopes":["data:read"],"data_classification":"pii"`); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ask(`,"required_scopes":["repo:write"]`); !strings.Contains(got, `"verified":false`) ||
		!strings.Contains(got, "Missing required scopes: repo:write") {
		t.Error(got)
	}
	if got := ask(`,"required_trust_level":"verified_partner"`); !strings.Contains(
		got, `"required_score":10,"error":"Trust score 8 below required 10"`) {
		t.Error(got)
	}
	if text, _ := h.call(
		"iatp_verify", `{"remote_agent_id":"agent-never-seen","required_trust_level":"any"}`); !strings.HasPrefix(
		text, `{"verified":false,`) || !strings.Contains(text, "is unknown") {
		t.Error(text)
	}
	var signed struct{ Envelope json.RawMessage }
	h.answer(&signed, "iatp_sign", fmt.Sprintf(`{"content":"x","agent_id":%q}`, id))
	shown := `,"attestation":` + string(signed.Envelope)
	if got := ask(shown); got != want {
		t.Errorf("with its attestation: %s", got)
	}
	for name, attestation := range map[string]string{
		"was used before": shown, "is not valid": strings.Replace(shown, `"payload":"`, `"payload":"AAAA`, 1),
		"is not valid: ": `,"attestation":{}`, "not valid": `,"attestation":{"payload":7}`,
	} {
		if got := ask(attestation); !strings.Contains(got, `"attestation_valid":false`) ||
			!strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
	}
	reputation := func(arguments string) (string, bool) {
		return h.call("iatp_reputation", fmt.Sprintf(arguments, id))
	}
	if text, _ := reputation(`{"action":"query","agent_id":%q}`); text != fmt.Sprintf(
		`{"agent_id":%q,"reputation_score":5.0,"trust_level":"standard","history_count":0}`, id) {
		t.Errorf("K-034: %s", text)
	}
	for _, c := range []struct{ severity, want string }{
		{"high", `"previous_score":5.0,"new_score":4.0,"penalty_applied":1.0,"reason":"Hallucination detected",` +
			`"severity":"high"`}, {"critical", `"new_score":2.0,"penalty_applied":2.0`},
		{"medium", `"new_score":1.5,"penalty_applied":0.5`}, {"low", `"new_score":1.25,"penalty_applied":0.25`},
	} {
		if text, isError := reputation(
			`{"action":"slash","agent_id":%q,"slash_reason":"Hallucination detected","slash_severity":"` + c.severity +
				`","evidence":{"drift":0.4}}`); isError || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.severity, text)
		}
	}
	if got := ask(""); !strings.Contains(got, `"trust_score":4.25`) ||
		!strings.Contains(got, `"required_score":5,"error":"Trust score 4.25 below required 5"`) {
		t.Errorf("K-036: %s", got)
	}
	for arguments, want := range map[string]string{
		`{"action":"slash","agent_id":%q}`:                                             "slash_reason is required",
		`{"action":"slash","agent_id":%q,"slash_reason":"x","slash_severity":"fatal"}`: "Invalid arguments",
		`{"action":"praise","agent_id":%q}`:                                            "Invalid arguments",
		`{"action":"query","agent_id":%q,"evidence":"x"}`:                              "Invalid arguments",
		`{"action":"query","agent_id":"no%s"}`:                                         "is unknown",
	} {
		if text, isError := reputation(arguments); !isError || !strings.Contains(text, want) {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if out := w.airlock("agents", "reputation", id, "--json"); !strings.Contains(out, `"history_count":4`) ||
		!strings.Contains(out, `"evidence":{"drift":0.4}`) {
		t.Error(out)
	}
}

// T41: an agent that is registered elsewhere is known by its pinned manifest.
func TestPinningThroughTheRealProgram(t *testing.T) {
	there := newWorld(t)
	id, _ := there.register("autonomous")
	offer := there.airlock("agents", "manifest", id, "--scope", "repo:read")
	file := filepath.Join(t.TempDir(), "agent.json")
	if err := os.WriteFile(file, []byte(offer), 0o600); err != nil {
		t.Fatal(err)
	}
	here := newWorld(t) // AIRLOCK_HOME is another directory from here on
	if out := here.airlock("agents", "pin", file, "--level", "trusted"); strings.TrimSpace(out) != id {
		t.Errorf("pinned %q", out)
	}
	h := here.stdio()
	if text, _ := h.call("iatp_verify", fmt.Sprintf(
		`{"remote_agent_id":%q,"required_trust_level":"trusted","required_scopes":["repo:read"]}`,
		id)); !strings.HasPrefix(text, `{"verified":true,`) {
		t.Error(text)
	}
	if text, isError := h.call("kernel_execute", fmt.Sprintf(`{"action":"file_list","agent_id":%q}`, id)); !isError ||
		!strings.Contains(text, "is not registered") {
		t.Errorf("a pinned agent acts here: %s", text)
	}
}

// K-004, K-044, T43: HTTP is guarded, and callers have what is theirs.
func TestCallersOverHTTP(t *testing.T) {
	w := newWorld(t)
	url := w.listen()
	a, tokenA := w.register("trusted")
	b, tokenB := w.register("trusted")
	var principal []string
	token := func(scopes ...string) string {
		args := append([]string{"tokens", "create", "x", "--json"}, principal...)
		for _, scope := range scopes {
			args = append(args, "--scope", scope)
		}
		var made struct{ Token string }
		out := w.airlock(args...)
		if err := json.Unmarshal([]byte(out), &made); err != nil || made.Token == "" {
			t.Fatalf("%s, %v", out, err)
		}
		return made.Token
	}
	for name, change := range map[string]func(*http.Request){
		"no token":      func(*http.Request) {},
		"a wrong token": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+tokenA[:len(tokenA)-1]+"x") },
		"another host": func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set(
				"Authorization", "Bearer "+tokenA)
		},
		"another origin": func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Authorization", "Bearer "+tokenA)
		},
		"no scope": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token("audit")) },
	} {
		request, err := http.NewRequestWithContext(
			t.Context(), http.MethodPost, url, strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		change(request)
		res, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
	}
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("it listens on %s", url)
	}

	agentA, agentB := w.overHTTP(url, tokenA), w.overHTTP(url, tokenB)
	slasher, admin := w.overHTTP(url, token("run", "slash")), w.overHTTP(url, token("run", "admin"))
	operator, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	principal = []string{"--for", operator.Username}
	runner := w.overHTTP(url, token("run", "agents", "audit"))
	write := func(h host, agent string) string {
		text, _ := h.call("kernel_execute", fmt.Sprintf(
			`{"action":"file_write","agent_id":%q,"params":{"path":"a","content":"secret of a"}}`, agent))
		return text
	}
	if text := write(agentA, a); !strings.Contains(text, `"status":"executed"`) {
		t.Error(text)
	}
	slash := func(h host, agent string) string {
		text, _ := h.call("iatp_reputation", fmt.Sprintf(`{"action":"slash","agent_id":%q,"slash_reason":"r"}`, agent))
		return text
	}
	for name, c := range map[string]struct{ got, want string }{
		"another agent writes": {write(agentB, a), "is not registered"},
		// its principal registered the agent
		"a user writes":            {write(runner, a), `"status":"executed"`},
		"a user without the scope": {write(slasher, a), "is not registered"},
		"an administrator":         {write(admin, a), `"status":"executed"`},
		"an agent slashes another": {slash(agentA, b), "needs the authority"},
		"an agent slashes itself":  {slash(agentA, a), "needs the authority"},
		"a user without slash":     {slash(runner, a), "needs the authority"},
		"a user with slash":        {slash(slasher, a), `"new_score":4.5`},
		"an administrator slashes": {slash(admin, a), `"new_score":4.0`},
		"an agent signs as another": {first(agentB.call(
			"iatp_sign", fmt.Sprintf(`{"content":"x","agent_id":%q}`, a))), "is not registered"},
		"an agent reads another's log": {first(agentB.call(
			"get_audit_log", fmt.Sprintf(`{"filter":{"agent_id":%q}}`, a))), "is not registered"},
		"an agent reads its own log": {first(agentB.call("get_audit_log", `{}`)), `"agent_id":"` + b + `"`},
		"a user without audit": {first(slasher.call("get_audit_log", `{}`)),
			"needs a token with the scope audit"},
		"a user with audit reads all":   {first(runner.call("get_audit_log", `{"limit":100}`)), a},
		"its own file":                  {resource(agentA, "vfs://"+a+"/mem/a"), "secret of a"},
		"another's file":                {resource(agentB, "vfs://"+a+"/mem/a"), "Resource not found"},
		"another's trail":               {resource(agentB, "audit://"+a+"/log"), "Resource not found"},
		"its own root":                  {resource(agentB, "vfs://"), b},
		"the whole trail without right": {resource(slasher, "audit://"), "Resource not found"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if root := resource(agentB, "vfs://"); strings.Contains(root, a) {
		t.Errorf("an agent's root names another: %s", root)
	}
	if log := first(agentB.call("get_audit_log", `{"limit":1000}`)); strings.Contains(log, `"agent_id":"`+a+`"`) {
		t.Errorf("an agent's log has another's entries: %s", log)
	}
}

// airlock serve has the same tools beside those for code.
func TestTheKernelInAirlockServe(t *testing.T) {
	w := newWorld(t)
	id, token := w.register("supervised")
	cmd := w.program("serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, role+"=airlock")
	url := w.serve(cmd)
	h := w.overHTTP(url+"/kernel/mcp", token)
	if text, isError := h.call("iatp_sign", fmt.Sprintf(`{"content":"x","agent_id":%q}`, id)); isError {
		t.Error(text)
	}
	if status, body := get(t, url+"/.well-known/agent-keys"); status != http.StatusOK ||
		!bytes.Contains(body, []byte(id)) {
		t.Errorf("%d, %s", status, body)
	}
	tools, err := w.overHTTP(url+"/mcp", token).ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) == 0 || tools.Tools[0].Name == "verify_code_safety" {
		t.Errorf("/mcp is not that for code: %+v, %v", tools, err)
	}

	// T41: a manifest that an operator created is fetched from another Airlock and pinned.
	address := url + "/.well-known/agent-manifest/" + id
	if status, _ := get(t, address); status != http.StatusNotFound {
		t.Errorf("a manifest that was not made: got %d", status)
	}
	w.airlock("agents", "manifest", id, "--scope", "repo:read")
	here := newWorld(t) // AIRLOCK_HOME is another directory from here on
	if out := here.airlock("agents", "pin", address); strings.TrimSpace(out) != id {
		t.Errorf("pinned %q", out)
	}
}

// K-044: a host on stdio with an agent's token is that agent, and what its state and
// its permissions forbid it is refused.
func TestAnAgentOnStdio(t *testing.T) {
	w := newWorld(t)
	a, token := w.register("supervised")
	b, _ := w.register("supervised")
	t.Setenv("AIRLOCK_AGENT_TOKEN", token)
	h := w.stdio()
	list := func(agent string) string {
		return first(h.call("kernel_execute", fmt.Sprintf(`{"action":"file_list","agent_id":%q}`, agent)))
	}
	if own, other := list(a), list(b); !strings.Contains(own, `"status":"executed"`) ||
		!strings.Contains(other, "is not registered") {
		t.Errorf("its own: %s; another's: %s", own, other)
	}
	w.say(map[string]string{"gpt-4": "VERDICT: TRUE", "claude-sonnet-4": "VERDICT: TRUE", "gemini-3": "VERDICT: TRUE"})
	claim := func() string { return first(h.call("cmvk_verify", `{"claim":"x"}`)) }
	if text := claim(); !strings.HasPrefix(text, `{"verified":true`) {
		t.Error(text)
	}
	asked := len(w.asked)
	w.airlock("agents", "signal", a, "SIGSTOP")
	if text := claim(); !strings.Contains(text, "the agent is suspended") || len(w.asked) != asked {
		t.Errorf("a stopped agent asks models: %s", text)
	}
	if text := list(a); text != `{"error":"SIGSTOP: Agent is stopped until it gets SIGCONT"}` {
		t.Error(text)
	}
	t.Setenv("AIRLOCK_AGENT_TOKEN", token+"x")
	cmd := w.program("--stdio")
	cmd.Stderr = nil
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "AIRLOCK_AGENT_TOKEN is not a valid token") {
		t.Errorf("a wrong token: %v, %s", err, out)
	}
}

func first(text string, _ bool) string { return text }

// resource reads a resource and returns its text or the error.
func resource(h host, uri string) string {
	res, err := h.ReadResource(h.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err.Error()
	}
	return res.Contents[0].Text
}
