package signin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// row is how a caller uses one thing that airlock serve offers.
type row struct {
	shared string                         // why nothing of another caller can be reached there; then try is nil
	thing  string                         // what of the other caller is tried for: run, file, agent, job
	lists  bool                           // it is a list, which must not contain another caller's items
	try    func(h host, id string) string // the answer, as text
}

func shared(why string) row { return row{shared: why} }

// The rows of the MCP faces, by what the face announces: a tool, a resource, a template
// of resources, a prompt.
var faceRows = map[string]map[string]row{
	"/mcp": {
		"tool search_tools":                       shared("the catalog is that of the caller's profile"),
		"tool get_tool_definition":                shared("the catalog is that of the caller's profile"),
		"tool run_code":                           shared("it makes a run of the caller's own"),
		"tool call_tool":                          shared("it calls a server as the caller itself"),
		"tool get_run":                            {thing: "run", try: calls("get_run", `{"run_id": %q}`)},
		"tool cancel_run":                         {thing: "run", try: calls("cancel_run", `{"run_id": %q}`)},
		"template airlock://runs/{run_id}/{name}": {thing: "file", try: reads("airlock://runs/%s/table.csv")},
		"list of resources": {thing: "file", lists: true, try: func(h host, _ string) string {
			list, err := h.mcp.ListResources(h.t.Context(), nil)
			return said(list, err)
		}},
		"prompt code_mode": shared("it shows how to use the tools"),
	},
	"/kernel/mcp": {
		"tool verify_code_safety": shared("it judges what it is given"),
		"tool cmvk_verify":        shared("it judges what it is given"),
		"tool cmvk_review":        shared("it judges what it is given"),
		"tool iatp_verify":        shared("keys of agents are public: /.well-known/agent-keys"),
		"tool iatp_reputation": shared(
			"trust in agents is public; slashing needs a scope of its own"),
		"tool kernel_execute": {thing: "agent",
			try: calls("kernel_execute", `{"action": "file_list", "params": {}, "agent_id": %q}`)},
		"tool iatp_sign": {thing: "agent",
			try: calls("iatp_sign", `{"content": "x", "agent_id": %q}`)},
		"tool get_audit_log": {thing: "agent",
			try: calls("get_audit_log", `{"filter": {"agent_id": %q}}`)},
		"resource vfs://":                         {thing: "agent", lists: true, try: reads("vfs://")},
		"resource audit://":                       shared("all of the log: it needs the scope audit"),
		"template vfs://{agent_id}/mem/{path}":    {thing: "agent", try: reads("vfs://%s/mem/")},
		"template vfs://{agent_id}/policy/{path}": {thing: "agent", try: reads("vfs://%s/policy/")},
		"template audit://{agent_id}/log":         {thing: "agent", try: reads("audit://%s/log")},
		"list of resources":                       shared("the same two for all"),
	},
	"/gateway/mcp": {
		"tool execute_python_code": shared("it makes a run of the caller's own"),
		"tool verification_status": {thing: "job", try: calls("verification_status", `{"job_id": %q}`)},
	},
}

// The bodies with which the operations of /v1 are tried that are about an agent. Each
// other operation has a row.
var agentBodies = map[string]string{
	"GET /v1/agents/{agent}": "", "GET /v1/agents/{agent}/budget": "", "GET /v1/agents/{agent}/activity": "",
	"PATCH /v1/agents/{agent}":      `{"name": "mine"}`,
	"POST /v1/agents/{agent}/token": "",
	"POST /v1/agents/{agent}/actions": `{"action": {"type": "execute_sql", "query": "SELECT 1"}, "context": ` +
		`{"conversation_id": "c", "step_number": 1}}`,
	"POST /v1/agents/{agent}/tools/{tool}": `{"parameters": {}}`,
	"POST /v1/agents/{agent}/status":       `{"status": "active"}`,
	"POST /v1/agents/{agent}/signal":       `{"signal": "SIGCONT"}`,
}

var apiRows = map[string]row{
	"GET /v1/openapi.json": shared("it is for everyone"),
	"POST /v1/agents":      shared("it registers an agent of the caller's own"),
	"GET /v1/remote-agents": shared("remote agents belong to the installation: it needs the scope agents " +
		"and no profile"),
	"GET /v1/remote-agents/{agent}": shared("likewise"),
	"PATCH /v1/remote-agents/{agent}": shared("they belong to the installation: it needs the scope admin and no " +
		"profile"),
	"DELETE /v1/remote-agents/{agent}": shared("likewise"),
	"GET /v1/approvals": shared("it needs the scope approve; app/api.TestApprovals tries the questions of another " +
		"person"),
	"GET /v1/approvals/{approval}":          shared("likewise"),
	"POST /v1/approvals/{approval}":         shared("likewise"),
	"GET /v1/approvals/{approval}/coverage": shared("likewise"),
	"GET /v1/grants":                        shared("likewise; app/api.TestGrants tries those of another person"),
	"DELETE /v1/grants/{grant}":             shared("likewise"),
	"GET /v1/runs": {thing: "run", lists: true,
		try: func(h host, _ string) string { return h.http("GET", "/v1/runs?limit=200", "") }},
	"GET /v1/servers": shared("the servers that the caller may use"),
	"GET /v1/records": shared("all of the log: it needs the scope audit and no profile"),
	"GET /v1/agents": {thing: "agent", lists: true,
		try: func(h host, _ string) string { return h.http("GET", "/v1/agents?limit=1000", "") }},
}

// host is a caller at one face, in one revision; mcp is nil for /v1.
type host struct {
	t     *testing.T
	url   string
	token string
	mcp   *mcp.ClientSession
}

func (h host) http(method, path, body string) string {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s", response.StatusCode, response.Header.Get("WWW-Authenticate"), raw)
}

// said formats an answer, or the error, as text.
func said(answer any, err error) string {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return fmt.Sprintf("error %d %s %s", wire.Code, wire.Message, wire.Data)
	}
	raw, marshal := json.Marshal(answer)
	return fmt.Sprintf("%s %v", raw, errors.Join(err, marshal))
}

func calls(tool, arguments string) func(h host, id string) string {
	return func(h host, id string) string {
		result, err := h.mcp.CallTool(h.t.Context(),
			&mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(fmt.Sprintf(arguments, id))})
		return said(result, err)
	}
}

func reads(uri string) func(h host, id string) string {
	return func(h host, id string) string {
		if strings.Contains(uri, "%s") {
			return said(h.mcp.ReadResource(h.t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf(uri, id)}))
		}
		return said(h.mcp.ReadResource(h.t.Context(), &mcp.ReadResourceParams{URI: uri}))
	}
}

// face connects a caller to a face.
func (s *service) face(t *testing.T, token, face, revision string) host {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url + face, HTTPClient: testenv.Bearer(token)},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return host{t, s.url, token, session}
}

// announced returns the tools, resources and prompts of a face.
func announced(t *testing.T, h host) []string {
	t.Helper()
	var names []string
	capabilities := h.mcp.InitializeResult().Capabilities
	for tool, err := range h.mcp.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, "tool "+tool.Name)
	}
	if capabilities.Resources != nil {
		names = append(names, "list of resources")
		for resource, err := range h.mcp.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(resource.URI, "airlock://runs/") {
				names = append(names, "resource "+resource.URI)
			}
		}
		for template, err := range h.mcp.ResourceTemplates(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, "template "+template.URITemplate)
		}
	}
	if capabilities.Prompts != nil {
		for prompt, err := range h.mcp.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, "prompt "+prompt.Name)
		}
	}
	return names
}

// absent is an ID of the same form that there is not.
func absent(id string) string {
	last := byte('0')
	if id[len(id)-1] == '0' {
		last = '1'
	}
	return id[:len(id)-1] + string(last)
}

// varying matches the parts that differ between any two answers.
var varying = regexp.MustCompile(`\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\dT[0-9:.]+Z?`)

// same is an answer without the ID that was asked for and without what always varies.
func same(answer, id string) string {
	return varying.ReplaceAllString(strings.ReplaceAll(answer, id, "ID"), "…")
}

// holds checks one row: an item of one caller does not exist for another.
func (r row) holds(t *testing.T, name string, owner, other host, id string) {
	t.Helper()
	if r.lists {
		if got := r.try(other, ""); strings.Contains(got, id) {
			t.Errorf("%s: another caller sees it in %s", name, got)
		}
		if got := r.try(owner, ""); !strings.Contains(got, id) {
			t.Errorf("%s: its owner does not see it in %s", name, got)
		}
		return
	}
	got, want := same(r.try(other, id), id), same(r.try(other, absent(id)), absent(id))
	if got != want {
		t.Errorf("%s: another caller gets %s\nand for what does not exist %s", name, got, want)
	}
	if own := same(r.try(owner, id), id); own == got {
		t.Errorf("%s: its owner gets what another gets: %s", name, own)
	}
}

// C-083: two callers never see each other's runs, files, agents, jobs or records, at any
// face: another caller's item is answered like a missing one. Anything that a face offers
// without a row here fails.
func TestCallersReachNothingOfEachOther(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t, "verify")
	const scopes = "openid airlock.use airlock.manage"
	owner := s.provider.signIn(t, firstUser, "laptop", s.url+"/mcp", scopes).Access
	other := s.provider.signIn(t, secondUser, "laptop", s.url+"/mcp", scopes).Access
	agent := s.agent(t, owner)

	t.Run("/v1", func(t *testing.T) {
		hosts := [2]host{{t, s.url, owner, nil}, {t, s.url, other, nil}}
		ids := map[string]string{"agent": agent, "run": made(t, s.face(t, owner, "/mcp", "2026-07-28"), "run_code",
			map[string]any{"language": "python", "code": "result = 1"}, `"run_id":"([^"]+)"`)}
		rows := maps.Clone(apiRows)
		for operation, body := range agentBodies {
			method, path, _ := strings.Cut(operation, " ")
			rows[operation] = row{thing: "agent", try: func(h host, id string) string {
				return h.http(method, strings.NewReplacer("{agent}", id, "{tool}", "x").Replace(path), body)
			}}
		}
		for _, operation := range operations(t) {
			r, ok := rows[operation]
			if strings.HasPrefix(operation, "POST /v1/verify/") {
				r, ok = shared("it judges what it is given"), true
			}
			if !ok {
				t.Errorf("%s has no row: say how what is another's is kept from callers", operation)
			}
			if r.try != nil {
				r.holds(t, operation, hosts[0], hosts[1], ids[r.thing])
			}
		}
	})
	for face, rows := range faceRows {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(face+" "+revision, func(t *testing.T) {
				hosts := [2]host{s.face(t, owner, face, revision), s.face(t, other, face, revision)}
				ids := map[string]string{"agent": agent}
				switch face {
				case "/mcp":
					ids["run"] = made(t, hosts[0], "run_code",
						map[string]any{"language": "python", "code": "import time\ntime.sleep(600)",
							"background": true}, `"run_id":"([^"]+)"`)
					ids["file"] = made(t, hosts[0], "run_code",
						map[string]any{"language": "python",
							"code": "client.attach(b'a,b', 'text/csv', 'table.csv')\nresult = 1"}, `"run_id":"([^"]+)"`)
				case "/gateway/mcp":
					ids["job"] = made(t, hosts[0], "execute_python_code",
						map[string]any{"code": "import time\ntime.sleep(100)", "background": true},
						`request ([0-9a-f-]{36})`)
				}
				offered := announced(t, hosts[0])
				for _, name := range offered {
					r, ok := rows[name]
					if !ok && strings.HasPrefix(name, "prompt ") && face == "/kernel/mcp" {
						r, ok = shared("it is the same text for all"), true
					}
					if !ok {
						t.Errorf("%s has no row: say how what is another's is kept from callers", name)
					}
					if r.try != nil {
						r.holds(t, name, hosts[0], hosts[1], ids[r.thing])
					}
				}
				for name := range rows {
					if !slices.Contains(offered, name) {
						t.Errorf("the row %q is for what is not offered", name)
					}
				}
				if session := hosts[0].mcp.ID(); session != "" {
					s.keepsSession(t, face, other, session)
					s.keepsRequests(t, face, other, hosts[1].mcp.ID())
				}
				if job := ids["job"]; job != "" {
					if got := calls("verification_status", `{"job_id": %q}`)(hosts[0], job); !strings.Contains(
						got, "Status: running") && !strings.Contains(got, "Status: queued") {
						t.Errorf("the owner's job: got %s, want that it goes on", got)
					}
				}
			})
		}
	}
}

// keepsSession tries to use the session of another caller: to ask in it, to listen, and
// to end it.
func (s *service) keepsSession(t *testing.T, face, other, session string) {
	t.Helper()
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		var got [2]string
		for i, id := range []string{session, absent(session)} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+face,
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Authorization": "Bearer " + other, "Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25",
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			} {
				r.Header.Set(name, value)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			got[i] = fmt.Sprintf("%d %s", response.StatusCode, same(string(raw), id))
		}
		if got[0] != got[1] {
			t.Errorf("%s in another's session: got %s, and in one that does not exist %s", method, got[0], got[1])
		}
	}
}

// keepsRequests cancels requests in a caller's own session, by the IDs that another
// caller's requests have.
func (s *service) keepsRequests(t *testing.T, face, token, session string) {
	t.Helper()
	for id := range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+face,
			strings.NewReader(fmt.Sprintf(
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25",
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		} {
			r.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusAccepted {
			t.Errorf("cancelling a request: got %s", response.Status)
		}
	}
}

// made calls a tool and finds the ID of what it has made.
func made(t *testing.T, h host, tool string, arguments map[string]any, pattern string) string {
	t.Helper()
	result, err := h.mcp.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	raw, _ := json.Marshal(result)
	found := regexp.MustCompile(pattern).FindSubmatch(raw)
	if err != nil || found == nil {
		t.Fatalf("%s: got %s, %v", tool, raw, err)
	}
	return string(found[1])
}

// agent registers one.
func (s *service) agent(t *testing.T, token string) string {
	t.Helper()
	answer := host{t, s.url, token, nil}.http("POST", "/v1/agents", `{"name": "analyst", "type": "trusted"}`)
	found := regexp.MustCompile(`"agent_id":"([^"]+)"`).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("registering an agent: %s", answer)
	}
	return found[1]
}

// operations are those of /v1, by the file that describes them.
func operations(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "app", "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Paths) == 0 {
		t.Fatal(err, len(file.Paths))
	}
	var names []string
	for path, methods := range file.Paths {
		for method := range methods {
			names = append(names, strings.ToUpper(method)+" "+path)
		}
	}
	return slices.Sorted(slices.Values(names))
}
