package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// realServer returns the script of a published server. These tests are skipped
// unless asked for, like those of sandboxes, because they need `make setup`.
func realServer(t testing.TB, name string) string {
	t.Helper()
	if !testenv.WantsSandboxes() {
		t.Skip("starts published MCP servers: run `make test`, or set AIRLOCK_TEST_SANDBOX=1")
	}
	script := filepath.Join(testenv.RepoRoot(t), "test", "servers", "node_modules", "@modelcontextprotocol", name,
		"dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("published servers were asked for, but %v (run `make setup` first)", err)
	}
	return script
}

func TestServerEverything(t *testing.T) {
	set := connect(t, nil, upstream.Config{ID: "everything", Command: "node",
		Args: []string{realServer(t, "server-everything")}})
	s, err := catalog.NewSnapshot(set.Servers())
	if err != nil {
		t.Fatal(err)
	}
	echo, err := s.Lookup("everything", "echo")
	if err != nil {
		t.Fatalf("%v (%v)", err, set.Problem("everything"))
	}
	if !strings.Contains(string(echo.Raw), `"execution":`) {
		t.Errorf("got %s, want the field that the SDK does not know", echo.Raw)
	}
	if _, ok := s.Tool("everything", "trigger-sampling-request"); ok {
		t.Errorf("got a tool for clients that declare sampling")
	}
	got, err := set.Call(t.Context(), "everything", "echo", json.RawMessage(`{"message":"grüße"}`))
	if err != nil || text(t, got) != "Echo: grüße" {
		t.Errorf("got %s, %v, want the echo", got, err)
	}
	got, err = set.Call(t.Context(), "everything", "get-structured-content", json.RawMessage(`{"location":"New York"}`))
	if err != nil || !strings.Contains(string(got), `"structuredContent":{`) {
		t.Errorf("got %s, %v, want structured content", got, err)
	}
	got, err = set.Call(t.Context(), "everything", "echo", json.RawMessage(`{}`))
	var failed *upstream.CallError
	if err != nil && !errors.As(err, &failed) || err == nil && !strings.Contains(string(got), `"isError":true`) {
		t.Errorf("wrong arguments: got %s, %v, want a failure", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = set.Call(ctx, "everything", "trigger-long-running-operation", json.RawMessage(`{"duration":30,"steps":3}`))
	if !errors.As(err, &failed) || failed.Type != upstream.Timeout {
		t.Errorf("got %v, want a Timeout", err)
	}
}

func TestServerEverythingOverHTTP(t *testing.T) {
	for _, test := range []struct {
		name, mode, path string
		sse              bool
	}{
		{"streamable HTTP", "streamableHttp", "/mcp", false},
		{"HTTP with SSE, as in MCP 2024-11-05", "sse", "/sse", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := startEverything(t, test.mode)
			set := connect(t, nil, upstream.Config{ID: "everything", URL: address + test.path, SSE: test.sse})
			got, err := set.Call(t.Context(), "everything", "get-sum", json.RawMessage(`{"a":2,"b":3}`))
			if err != nil || !strings.Contains(text(t, got), "5") {
				t.Errorf("got %s, %v, want a sum (%v)", got, err, set.Problem("everything"))
			}
		})
	}
}

// startEverything starts server-everything on an unused port and returns its address.
func startEverything(t *testing.T, mode string) string {
	t.Helper()
	script := realServer(t, "server-everything")
	address := testenv.ReservedAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), "node", script, mode)
	server.Env = append(os.Environ(), "PORT="+port)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Wait() }) // t.Context ended it
	testenv.Await(t, "the server", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + address
}

func TestServerMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	set := connect(t, nil, upstream.Config{ID: "memory", Command: "node",
		Args: []string{realServer(t, "server-memory")}, Env: map[string]string{"MEMORY_FILE_PATH": file}})
	entity := json.RawMessage(
		`{"entities":[{"name":"Airlock","entityType":"program","observations":["has two doors"]}]}`)
	if _, err := set.Call(t.Context(), "memory", "create_entities", entity); err != nil {
		t.Fatal(err)
	}
	got, err := set.Call(t.Context(), "memory", "read_graph", nil)
	if err != nil || !strings.Contains(string(got), "two doors") {
		t.Errorf("got %s, %v, want what was written", got, err)
	}
}

func TestServerFilesystem(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := connect(t, nil, upstream.Config{ID: "files", Command: "node",
		Args: []string{realServer(t, "server-filesystem"), directory}})
	path := func(p string) json.RawMessage { return json.RawMessage(`{"path":` + strconv.Quote(p) + `}`) }
	got, err := set.Call(t.Context(), "files", "read_text_file", path(filepath.Join(directory, "a.txt")))
	if err != nil || text(t, got) != "hello" {
		t.Errorf("got %s, %v, want hello", got, err)
	}
	got, err = set.Call(t.Context(), "files", "read_text_file", path("/etc/hostname"))
	if err != nil || !strings.Contains(string(got), `"isError":true`) {
		t.Errorf("got %s, %v, want an error of the tool", got, err)
	}
}

// npx starts a shell that starts the server: three processes, all ended by Close.
func TestServerThroughNpx(t *testing.T) {
	script := realServer(t, "server-memory")
	directory := filepath.Join(testenv.RepoRoot(t), "test", "servers")
	set := connect(t, nil, upstream.Config{ID: "memory", Command: "npx",
		Args: []string{"--no-install", "mcp-server-memory"}, Dir: directory,
		Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}})
	if _, err := set.Call(t.Context(), "memory", "read_graph", nil); err != nil {
		t.Fatalf("%v (%v)", err, set.Problem("memory"))
	}
	if running := processesOf(t, t.Name()); len(running) < 2 {
		t.Errorf("got %d processes of npx, want npx and the server", len(running))
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range processesOf(t, t.Name()) {
		t.Errorf("process %d is left of npx for %s", pid, script)
	}
}

// processesOf returns the processes whose environment names this test's directory.
func processesOf(t testing.TB, test string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))) // the pattern saw to the digits
		if err == nil && pid != os.Getpid() && strings.Contains(
			string(env), "MEMORY_FILE_PATH="+os.TempDir()+"/"+test) {
			found = append(found, pid)
		}
	}
	return found
}
