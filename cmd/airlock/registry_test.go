package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRegistry drives the real program with the scripts of testdata/registry and a registry over HTTP.
func TestRegistry(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/registry",
		Setup: func(env *testscript.Env) error {
			nameConfiguration(env)
			server := httptest.NewServer(&publisher{dir: env.WorkDir})
			env.Defer(server.Close)
			env.Setenv("REGISTRY", server.URL)
			return nil
		},
	})
}

// publisher serves the files of a script in the format of a registry, and an MCP server at /mcp. The file of a server
// is registry/NAMESPACE/NAME.json, where URL stands for the address of the registry. It is the answer for each version.
// If there is a file token, each request needs it.
type publisher struct{ dir string }

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := os.ReadFile(filepath.Join(p.dir, "token"))
	if err == nil && r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(token)) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	switch path := r.URL.EscapedPath(); {
	case r.URL.Path == "/mcp":
		answerMCP(w, r)
	case path == "/v0.1/servers":
		p.list(w, r)
	case strings.HasPrefix(path, "/v0.1/servers/"):
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/v0.1/servers/"), "/versions/")
		p.serve(w, r, strings.ReplaceAll(name, "%2F", "/"))
	default:
		http.NotFound(w, r)
	}
}

func (p *publisher) serve(w http.ResponseWriter, r *http.Request, name string) {
	text, err := os.ReadFile(filepath.Join(p.dir, "registry", name+".json"))
	if err != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte(`{"title":"Not Found","status":404,"detail":"Server not found"}`))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(strings.ReplaceAll(string(text), "URL", "http://"+r.Host)))
}

// list answers a search with one server on each page.
func (p *publisher) list(w http.ResponseWriter, r *http.Request) {
	files, _ := filepath.Glob(filepath.Join(p.dir, "registry", "*", "*.json"))
	page := map[string]any{"servers": []any{}, "metadata": map[string]any{}}
	for i, file := range files {
		text, err := os.ReadFile(file)
		cursor := strconv.Itoa(i)
		if err != nil || !strings.Contains(file, r.FormValue("search")) || r.FormValue("cursor") > cursor {
			continue
		}
		if len(page["servers"].([]any)) > 0 {
			page["metadata"] = map[string]any{"nextCursor": cursor}
			break
		}
		page["servers"] = []any{json.RawMessage(strings.ReplaceAll(string(text), "URL", "http://"+r.Host))}
	}
	json.NewEncoder(typed{w}).Encode(page)
}

// typed sets the content type before the first byte.
type typed struct{ http.ResponseWriter }

func (t typed) Write(p []byte) (int, error) {
	t.Header().Set("Content-Type", "application/json")
	return t.ResponseWriter.Write(p)
}

// answerMCP is a server with the tool "forecast" only.
func answerMCP(w http.ResponseWriter, r *http.Request) {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&message) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"weather","version":"9"}}`,
		"tools/list": `{"tools":[{"name":"forecast","description":"A forecast.","inputSchema":{"type":"object"}}]}`,
		"ping":       `{}`,
	}
	result, known := answers[message.Method]
	switch {
	case message.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case !known:
		typed{w}.Write([]byte(`{"jsonrpc":"2.0","id":` + string(message.ID) +
			`,"error":{"code":-32601,"message":"unknown method"}}`))
	default:
		typed{w}.Write([]byte(`{"jsonrpc":"2.0","id":` + string(message.ID) + `,"result":` + result + `}`))
	}
}
