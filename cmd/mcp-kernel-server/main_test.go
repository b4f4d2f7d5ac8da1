package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// role is the variable that makes this test binary another program.
const role = "MCP_KERNEL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "kernel":
		main()
	case "airlock":
		os.Exit(cli.Process(cli.Main))
	case "database":
		os.Exit(database(os.Getenv("NOTES")))
	}
	os.Exit(m.Run())
}

// database is an MCP server with a tool that takes SQL. It notes every statement.
func database(notes string) int {
	server := mcp.NewServer(&mcp.Implementation{Name: "database", Version: "1"}, nil)
	type query struct {
		Query string `json:"query"`
	}
	type rows struct {
		Rows []string `json:"rows"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "query", Description: "Run SQL."},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, rows, error) {
			file, err := os.OpenFile(notes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, rows{}, err
			}
			_, err = fmt.Fprintln(file, q.Query)
			return nil, rows{[]string{"row of " + q.Query, "reach ann.smith@northwind-mail.com"}}, err
		})
	if server.Run(context.Background(), &mcp.StdioTransport{}) != nil {
		return 1
	}
	return 0
}

// world is a separate state directory with a configuration.
type world struct {
	*testing.T
	home, config, notes string

	mu    sync.Mutex
	said  map[string]string // what each model answers
	asked []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := testenv.OwnHome(t)
	dir := t.TempDir()
	w := &world{T: t, home: env.Home, config: filepath.Join(dir, "airlock.yaml"), notes: filepath.Join(dir, "notes"),
		said: map[string]string{}}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	models := httptest.NewServer(http.HandlerFunc(w.model))
	t.Cleanup(models.Close)
	t.Setenv("KERNEL_TEST_KEY", "sk-kernel-test-4f9a8b7c6d5e")
	text := fmt.Sprintf(`
mcpServers: {db: {command: %q, env: {%s: database, NOTES: %q}}}
servers: {db: {allow: [query], tools: {query: {risk: read}}}}
models:
  gpt-4: {url: %[4]q, key: "env:KERNEL_TEST_KEY"}
  claude-sonnet-4: {url: %[4]q, key: "env:KERNEL_TEST_KEY"}
  gemini-pro: {url: %[4]q, model: gemini-3, key: "env:KERNEL_TEST_KEY"}
kernel:
  actions: {database_query: {server: db, tool: query}}
  policies: [own.cedar]
sandbox: {pool: 1}
%s`, program, role, w.notes, models.URL+"/v1", testenv.HostIsAProxy)
	own := `@id("own.office") @policy("office_hours") @reason("Closed, blocked by office_hours policy")
forbid (principal, action == Action::"execute", resource) when { context.policies.contains("office_hours") };`
	for path, content := range map[string]string{w.config: text, filepath.Join(dir, "own.cedar"): own} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// model answers as OpenAI's API does.
func (w *world) model(out http.ResponseWriter, r *http.Request) {
	var question struct {
		Model    string
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil ||
		r.Header.Get("Authorization") != "Bearer sk-kernel-test-4f9a8b7c6d5e" {
		w.Errorf("%v, %v", err, r.Header)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, question.Model)
	text, says := w.said[question.Model]
	if !says {
		http.Error(out, "down", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(out).Encode(
		map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": text}}}})
}

func (w *world) say(answers map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = answers
}

// airlock runs a verb of airlock and returns what it printed.
func (w *world) airlock(args ...string) string {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := testenv.AtTerminal(w, exec.CommandContext(w.Context(), self, append(args, "--config", w.config)...))
	cmd.Env = append(os.Environ(), role+"=airlock")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("airlock %q: %v: %s", args, err, errs.String())
	}
	return string(out)
}

// register makes an agent and returns its ID and its token.
func (w *world) register(kind string) (id, token string) {
	w.Helper()
	var made struct {
		ID    string `json:"agent_id"`
		Token string `json:"agent_token"`
	}
	if err := json.Unmarshal(
		[]byte(w.airlock("agents", "create", "worker", "--type", kind, "--allowed-tool", "db/query", "--json")),
		&made); err != nil {
		w.Fatal(err)
	}
	return made.ID, made.Token
}

// program is the command of the real program.
func (w *world) program(args ...string) *exec.Cmd {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(self, append(args, "--config", w.config)...)
	cmd.Env = append(os.Environ(), role+"=kernel")
	cmd.Stderr = w.Output()
	return cmd
}

// host is an MCP host with a session.
type host struct {
	*world
	*mcp.ClientSession
}

// stdio starts the program as a host would, and connects to it.
func (w *world) stdio() host {
	w.Helper()
	return w.connect(&mcp.CommandTransport{Command: w.program("--stdio")})
}

func (w *world) connect(transport mcp.Transport) host {
	w.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(w.Context(), transport, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = session.Close() })
	return host{w, session}
}

// listen starts the program with --http and returns the address that it prints.
func (w *world) listen() string {
	w.Helper()
	return w.serve(w.program("--http", "--port", "0"))
}

// serve starts a program and returns the first line that it prints.
func (w *world) serve(cmd *exec.Cmd) string {
	w.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			w.Errorf("the program ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// overHTTP connects with a token.
func (w *world) overHTTP(url, token string) host {
	w.Helper()
	return w.connect(&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: testenv.Bearer(token),
		MaxRetries: -1})
}

// call calls a tool and returns the text of its answer, which its structured
// content is equal to, and whether it is an error.
func (h host) call(tool, arguments string) (text string, isError bool) {
	h.Helper()
	res, err := h.CallTool(h.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		h.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(res.Content) != 1 {
		h.Fatalf("%s: %d blocks", tool, len(res.Content))
	}
	text = res.Content[0].(*mcp.TextContent).Text
	var written any
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		h.Fatalf("%s: %v in %s", tool, err, text)
	}
	structured, _ := json.Marshal(res.StructuredContent)
	if same, _ := json.Marshal(written); !bytes.Equal(same, structured) {
		h.Errorf("%s: the text is %s, the structured content %s", tool, same, structured)
	}
	return text, res.IsError
}

// answer is call for an answer that is read.
func (h host) answer(into any, tool, arguments string) (isError bool) {
	h.Helper()
	text, isError := h.call(tool, arguments)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		h.Fatal(err)
	}
	return isError
}

// lines are the statements that the database got.
func (w *world) lines() string {
	raw, err := os.ReadFile(w.notes)
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(raw)
}
