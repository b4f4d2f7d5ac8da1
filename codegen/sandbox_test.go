package codegen_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Variables that make the test's own program an MCP server: the list of tools
// it offers, and the file to which it writes the calls that reach it.
const (
	serveVariable  = "AIRLOCK_CODEGEN_SERVE"
	recordVariable = "AIRLOCK_CODEGEN_RECORD"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(serveVariable); file != "" {
		if err := serve(file, os.Getenv(recordVariable), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve speaks as much of MCP over stdio as a client needs to list and call
// the tools of a file. Each call is recorded and answered with what the tool's
// outputSchema promises, if anything.
func serve(file, record string, in io.Reader, out io.Writer) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	recorder, err := os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer recorder.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		if request.ID == nil {
			continue
		}
		result, err := answer(request.Method, request.Params, list.Tools, recorder)
		if err != nil {
			return err
		}
		response, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
		if err != nil {
			return err
		}
		if _, err := out.Write(append(response, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answer(method string, params json.RawMessage, tools []json.RawMessage, recorder io.Writer) (any, error) {
	switch method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "recorder", "version": "1"},
		}, nil
	case "tools/list":
		return map[string]any{"tools": tools}, nil
	case "tools/call":
		if _, err := fmt.Fprintf(recorder, "%s\n", params); err != nil {
			return nil, err
		}
		return promised(params, tools)
	}
	return map[string]any{}, nil
}

// promised returns a result that fits the outputSchema of the called tool.
func promised(params json.RawMessage, tools []json.RawMessage) (any, error) {
	var call struct{ Name string }
	if err := json.Unmarshal(params, &call); err != nil {
		return nil, err
	}
	result := map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}}
	for _, raw := range tools {
		var tool struct {
			Name         string
			OutputSchema json.RawMessage
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, err
		}
		if tool.Name == call.Name && tool.OutputSchema != nil {
			result["structuredContent"] = drawArguments(tool.OutputSchema, 0, true)
		}
	}
	return result, nil
}

// TestEveryWrapperInSandbox calls every wrapper of the corpus from code in a
// sandbox, through the broker, and reads at the upstream servers what arrived.
func TestEveryWrapperInSandbox(t *testing.T) {
	testenv.OwnHome(t)
	servers := corpus(t)
	airlock := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
	for _, lang := range []codegen.Language{codegen.Python, codegen.Node} {
		t.Run(string(lang), func(t *testing.T) {
			dir := t.TempDir()
			calls := drawCalls(t, servers, generate(t, servers, lang), lang)
			code := filepath.Join(dir, "code")
			writeFile(t, code, sandboxProgram(t, calls, lang))
			run := exec.CommandContext(t.Context(), airlock, "run", "--lang", string(lang), "--config",
				recordingConfig(t, dir, servers), code)
			var stderr bytes.Buffer
			run.Stderr = &stderr
			output, err := run.Output()
			if err != nil {
				t.Fatalf("airlock run: %v\n%.3000s\n%.3000s", err, output, stderr.String())
			}
			checkEnvelope(t, output, len(calls))
			for _, server := range servers {
				checkRecord(t, filepath.Join(dir, server.ID+".calls"), server.ID, calls)
			}
		})
	}
}

// recordingConfig writes a configuration with a recording server for each of
// the corpus, and returns its path.
func recordingConfig(t *testing.T, dir string, servers []catalog.Server) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	upstreams := map[string]any{}
	for _, server := range servers {
		upstreams[server.ID] = map[string]any{"command": self, "env": map[string]string{
			serveVariable:  filepath.Join(testenv.Corpus(t), "tools", server.ID+".json"),
			recordVariable: filepath.Join(dir, server.ID+".calls"),
		}}
	}
	policy := filepath.Join(dir, "all.cedar")
	writeFile(t, policy, "permit (principal, action, resource);\n")
	path := filepath.Join(dir, "airlock.yaml")
	writeFile(t, path, jsonText(t, map[string]any{
		"mcpServers": upstreams, "policies": []string{policy},
		"sandbox": map[string]any{"timeout": "3m", "pool": 0},
		"limits":  map[string]any{"calls": 10_000},
		"audit":   map[string]any{"path": filepath.Join(dir, "audit")},
	}))
	return path
}

// sandboxProgram writes code that makes the calls and results in those that failed.
func sandboxProgram(t testing.TB, calls []call, lang codegen.Language) string {
	t.Helper()
	list, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	if lang == codegen.Python {
		return `import importlib, json
failed = []
calls = json.loads(` + jsonText(t, string(list)) + `)
for call in calls:
    function = getattr(importlib.import_module("servers." + call["module"]), call["function"])
    try:
        await function(call["arguments"])
    except Exception as error:
        failed.append([call["server"], call["tool"], str(error)])
result = {"calls": len(calls), "failed": failed}
`
	}
	return `const failed = [];
const calls = JSON.parse(` + jsonText(t, string(list)) + `);
for (const call of calls) {
  const module = await import("./servers/" + call.module + "/index.js");
  try {
    await module[call.function](call.arguments);
  } catch (error) {
    failed.push([call.server, call.tool, String(error)]);
  }
}
globalThis.result = { calls: calls.length, failed };
`
}

func checkEnvelope(t *testing.T, output []byte, calls int) {
	t.Helper()
	var envelope struct {
		Result struct {
			OK   bool
			Data struct {
				Calls  int
				Failed [][]string
			}
		}
	}
	if err := json.Unmarshal(output, &envelope); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, failure := range envelope.Result.Data.Failed {
		t.Errorf("%s", strings.Join(failure, ": "))
	}
	if got := envelope.Result.Data.Calls; !envelope.Result.OK || got != calls {
		t.Errorf("got ok %v with %d calls, want %d: %.1000s", envelope.Result.OK, got, calls, output)
	}
}

// checkRecord compares what reached a server with the calls that were meant for it.
func checkRecord(t *testing.T, record, serverID string, calls []call) {
	t.Helper()
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var arrived bytes.Buffer
	var meant []call
	for _, c := range calls {
		if c.Server == serverID {
			c.Function = ""
			meant = append(meant, c)
		}
	}
	for line := range bytes.Lines(data) {
		var params struct {
			Name      string
			Arguments map[string]any
		}
		if err := json.Unmarshal(line, &params); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&arrived, jsonText(t, []any{serverID, params.Name, params.Arguments, ""}))
	}
	compareCalls(t, arrived.Bytes(), meant)
}
