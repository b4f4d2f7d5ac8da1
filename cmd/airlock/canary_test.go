package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// leakyServer answers, fails and describes itself with the credential that it
// was given and with a token, as they are and encoded.
const leakyServer = `
import { createInterface } from "node:readline";
const held = process.env.API_TOKEN, token = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx";
const all = held + " " + token + " " + Buffer.from(held).toString("base64") + " " + Buffer.from(held).toString("hex");
const tools = ["answers", "fails", "breaks"].map((name) => ({ name, description: "Uses " + all, inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }));
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if (m.method === "initialize") send({ id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "leaky", version: "1" } } });
  else if (m.method === "tools/list") send({ id: m.id, result: { tools } });
  else if (m.method === "tools/call" && m.params.name === "breaks") send({ id: m.id, error: { code: -32000, message: "broken by " + all } });
  else if (m.method === "tools/call") send({ id: m.id, result: { isError: m.params.name === "fails", content: [{ type: "text", text: "with " + all }] } });
  else if (m.id !== undefined) send({ id: m.id, error: { code: -32601, message: all } });
}
`

// What run_code and get_run answer to a host of agents has neither a held
// credential nor a token in it, whether the run succeeds, fails or goes on in the
// background, and whichever way the code came by them.
func TestRunCodeShowsNoSecret(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "leaky.mjs")
	if err := os.WriteFile(program, []byte(leakyServer), 0o600); err != nil {
		t.Fatal(err)
	}
	session := host(t, fmt.Sprintf(`
mcpServers: {leaky: {command: node, args: [%q], env: {API_TOKEN: c4nary-held-0123456789}}}
servers: {leaky: {trustAnnotations: true, allow: ["*"]}}
audit: {path: %q}
`, program, filepath.Join(dir, "audit.jsonl")))
	const token = "token = 'ghp_' + 'wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx'\nfrom servers import leaky\n"
	for name, code := range map[string]string{
		"a result": token +
			"result = [str((await leaky.answers({})).data), token, {token: repr('\\n' + token)}]",
		"output":           token + "print((await leaky.answers({})).data, token.encode().hex())\nresult = 1",
		"a tool's failure": token + "await leaky.fails({})",
		"a server's error": token + "await leaky.breaks({})",
		"a traceback":      token + "raise RuntimeError(token)",
	} {
		for _, background := range []bool{false, true} {
			answer, text := call(t, session, "run_code",
				map[string]any{"language": "python", "code": code, "background": background})
			if background {
				answer, text = until(t, session, answer.RunID, func(runState) bool { return false })
			}
			all, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			shown := text + string(all)
			if !strings.Contains(shown, "[redacted:") {
				t.Errorf("%s, background %t: got %s, want the places of what was removed", name, background, shown)
			}
			for _, canary := range []string{"c4nary", "wWPw5k4aXcaT4fNP", "YzRuYXJ5", "63346e617279", "775750773"} {
				if strings.Contains(shown, canary) {
					t.Errorf("%s, background %t: %s is in %s", name, background, canary, shown)
				}
			}
		}
	}
}
