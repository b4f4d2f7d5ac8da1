package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// rowsServer is an MCP server over HTTP with one tool, which returns rows of 100 bytes, as structured content and, as
// the protocol recommends, once more as text. It answers with JSON or as events.
func rowsServer(t *testing.T, asJSON bool) string {
	t.Helper()
	type size struct {
		Megabytes int `json:"megabytes"`
	}
	type rows struct {
		Rows []string `json:"rows"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "rows", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "rows", Description: "Returns rows."},
		func(_ context.Context, _ *mcp.CallToolRequest, in size) (*mcp.CallToolResult, rows, error) {
			out := rows{make([]string, 10_000*in.Megabytes)}
			for i := range out.Rows {
				out.Rows[i] = fmt.Sprintf("%07d%s", i, strings.Repeat("r", 90))
			}
			return nil, out, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: asJSON}))
	t.Cleanup(web.Close)
	return web.URL
}

// A tool's result of 50 MB becomes a file of the session, over each transport and in each language, with the advice of
// a run's own result (issue 27.10). A result that the session or limits.largeResultBytes cannot hold is refused, and
// nothing else is lost.
func TestAToolsResultOf50MBIsKeptInTheSession(t *testing.T) {
	testenv.OwnHome(t, "node", "python")
	const (
		isIn   = "all of it is in /workspace/session/%s: read that file, and return a summary"
		advice = "ask the tool for less: one page, fewer columns or a filter"
	)
	steps := []struct{ name, language, code, data, told string }{
		{"stdio, Python", "python", "from servers.big import big\nresult = len(await big({'bytes': 50_000_000}))",
			``, fmt.Sprintf(isIn, "big.big.txt")},
		{"the next run has the file", "node", `
import { readFileSync } from "node:fs";
const text = readFileSync("/workspace/session/big.big.txt", "utf8");
globalThis.result = [text.length, text.indexOf("y")];`, `[50000000,-1]`, ""},
		{"stdio, Node, which reads it at once", "node", `
import { big } from "./servers/big/index.js";
import { statSync } from "node:fs";
try {
  await big({ bytes: 51_000_000 });
} catch ({ type, file, retryable }) {
  globalThis.result = [type, file, statSync(file).size, retryable];
}`, `["OutputLimit","/workspace/session/big.big.txt",51000000,false]`, ""},
		{"more than the session holds", "python", "from servers.rows import rows\nawait rows({'megabytes': 50})", ``,
			"the session cannot hold it: 10"},
		{"which keeps the file", "python", "import os\nresult = os.listdir('/workspace/session')\n" +
			"os.remove('/workspace/session/big.big.txt')", `["big.big.txt"]`, ""},
		{"JSON over HTTP, Python", "python", "from servers.rows import rows\nawait rows({'megabytes': 50})", ``,
			fmt.Sprintf(isIn, "rows.rows.json")},
		{"a file of rows", "python", "import json, os\nrows = json.load(open('/workspace/session/rows.rows.json'))" +
			"['rows']\nresult = [len(rows), rows[-1][:7]]\nos.remove('/workspace/session/rows.rows.json')",
			`[500000,"0499999"]`, ""},
		{"events over HTTP, Node", "node",
			"import { rows } from './servers/events/index.js';\nawait rows({ megabytes: 50 });", ``,
			fmt.Sprintf(isIn, "events.rows.json")},
		{"another run without it", "node", `
import { rmSync } from "node:fs";
rmSync("/workspace/session/events.rows.json");
globalThis.result = 1;`, `1`, ""},
		{"several at once", "python", `
import asyncio, os
from servers.big import big
from servers.events import rows
calls = [big({'bytes': n}) for n in (13_000_001, 13_000_002, 10)] + [rows({'megabytes': 20})]
found = await asyncio.gather(*calls, return_exceptions=True)
files = [error.file for error in (found[0], found[1], found[3])]
result = [[os.path.getsize(file) for file in files], len(found[2])]
for file in files:
    os.remove(file)`,
			`[[13000001,13000002,20000010],10]`, ""},
		{"more than the disk holds, Python", "python", `
from servers.big import big
import os
try:
    with open('/workspace/full', 'wb', buffering=0) as full:
        while full.write(bytes(8 << 20)): pass
except OSError:
    pass
try:
    await big({'bytes': 50_000_000})
except Exception as error:
    whole = '/workspace/session/big.big.txt: No space left on device; ask the tool for less'
    result = [error.file, str(error).endswith(whole), os.listdir('/workspace/session')]`,
			`[null,true,[]]`, ""},
		{"more than the disk holds, Node", "node", `
import { big } from "./servers/big/index.js";
import { appendFileSync, readdirSync } from "node:fs";
try {
  for (;;) appendFileSync("/workspace/full", Buffer.alloc(8 << 20));
} catch {}
await big({ bytes: 50_000_000 }).catch((error) => {
  const whole = error.message.endsWith("/big.big.txt: ENOSPC; ask the tool for less");
  globalThis.result = [error.file ?? null, whole, readdirSync("/workspace/session")];
});`, `[null,true,[]]`, ""},
		{"above the limit", "python", "from servers.big import big\nawait big({'bytes': 130_000_000})", ``,
			"the result has more than the 125829120 bytes that one call may return; " + advice},
	}
	fake, _ := upstreamtest.Fake(t, "good")
	file := configured(t, fmt.Sprintf(`audit: {path: %q}
limits: {largeResultBytes: 120MiB}
sandbox: {pool: 0, disk: 128MiB, timeout: 5m}
face: {callTool: true}
mcpServers:
  big: {command: %q, args: [-mode, good]}
  rows: {url: %q}
  events: {url: %q}
servers: {big: {allow: ["*"]}, rows: {allow: ["*"]}, events: {allow: ["*"]}}
`, filepath.Join(t.TempDir(), "audit"), fake.Command, rowsServer(t, true), rowsServer(t, false)))
	session := connected(t, file)
	for _, step := range steps {
		data, told := ran(t, session, step.language, step.code)
		if data != step.data || !strings.Contains(told, step.told) {
			t.Errorf("%s: got %s, want %s; told %q, want %q in it", step.name, data, step.data, told, step.told)
		}
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{
		"server": "big", "tool": "big", "arguments": map[string]any{"bytes": 14_000_000}}})
	if err != nil || !res.IsError || !strings.Contains(textOf(res), fmt.Sprintf(isIn, "big.big.txt")) {
		t.Fatalf("one call without code: got %v, %v, want an error that names the file", res, err)
	}
	if data, told := ran(t, session, "python",
		"import os\nresult = os.path.getsize('/workspace/session/big.big.txt')"); data != "14000000" {
		t.Errorf("the run after the call: got %s, %s", data, told)
	}
	program := filepath.Join(t.TempDir(), "alone.py")
	if err := os.WriteFile(program, []byte(`
from servers.big import big, ToolError
import os
try:
    await big({'bytes': 14_000_000})
except ToolError as error:
    result = {"size": os.path.getsize(error.file)}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := airlock(t, "run", "--config", file, program); code != 0 ||
		!strings.Contains(stdout, `"data":{"size":14000000}`) {
		t.Errorf("airlock run: got %d, %s, %s", code, stdout, stderr)
	}
}
