package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// A batch is so many calls of a tool, of which the first do not count.
const (
	batch      = 50
	batchHeads = 5
	// perBatch is the number of cheap runs in one batch.
	perBatch = 10
)

// target is a real MCP server on stdio whose tool "echo" returns its argument.
type target struct {
	name    string // as the table has it
	command string
	args    []string
}

// echoTools is the tools/list answer of our own target.
const echoTools = `{"tools":[{"name":"echo","description":"Returns its arguments.","annotations":{"readOnlyHint":true},
	"inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}]}`

func (b *bench) targets() ([]target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tools := filepath.Join(b.home, "echo.json")
	everything := filepath.Join(b.root, "test", "servers", "node_modules", "@modelcontextprotocol", "server-everything",
		"dist", "index.js")
	return []target{
		{"a server by go-sdk", self, []string{"-serve", tools}},
		{"server-everything of npm", "node", []string{everything, "stdio"}},
	}, os.WriteFile(tools, []byte(echoTools), 0o600)
}

// measureCalls makes tool calls from inside a sandbox, through wrapper client,
// socket, broker, policy and durable record, in turn with the same calls by
// go-sdk directly. The programs inside measure each call themselves.
func measureCalls(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	targets, err := b.targets()
	if err != nil {
		return err
	}
	airlock, err := b.openFace(ctx, inFrontOf(targets), &undo)
	if err != nil {
		return err
	}
	var ways []way
	for i, target := range targets {
		session, err := connect(ctx, exec.Command(target.command, target.args...))
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", target.name, err)
		}
		undo.Add(session.Close)
		ways = append(ways, way{name: "direct" + target.name, take: direct(session)})
		for _, lang := range languages() {
			ways = append(ways, way{name: lang.id + target.name, take: func(ctx context.Context) (sample, error) {
				var took sample
				return took, airlock.run(ctx, lang, callingProgram(lang, serverID(i)), &took)
			}})
		}
	}
	taken, err := inTurn(ctx, max(1, b.rounds/perBatch), roundPause, ways...)
	if err != nil {
		return err
	}
	for _, target := range targets {
		plain := taken["direct"+target.name]
		b.table.add(newRow("one tool call by go-sdk, "+target.name, "ms", plain))
		for _, lang := range languages() {
			b.table.add(newRow("the same from inside, "+lang.name, "ms", taken[lang.id+target.name]).aims(
				"≤ +0.6").adds(plain, "go-sdk").times(plain, "go-sdk"))
		}
	}
	return nil
}

func serverID(i int) string { return fmt.Sprintf("target-%d", i) }

// inFrontOf is a configuration with the targets behind Airlock, in which
// a tool that only reads needs no approval.
func inFrontOf(targets []target) map[string]any {
	config, servers, trust := pooled(2), map[string]any{}, map[string]any{}
	for i, target := range targets {
		servers[serverID(i)] = map[string]any{"command": target.command, "args": target.args}
		trust[serverID(i)] = map[string]any{"trustAnnotations": true}
	}
	config["mcpServers"], config["servers"] = servers, trust
	return config
}

// direct makes a batch of calls in a session of go-sdk.
func direct(session *mcp.ClientSession) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		var took sample
		for n := range batchHeads + batch {
			got, err := timed(func() error { return callEcho(ctx, session, fmt.Sprintf("message %d", n)) })
			if err != nil {
				return nil, err
			}
			took = append(took, got...)
		}
		return took[batchHeads:], nil
	}
}

// callEcho makes one call.
func callEcho(ctx context.Context, session *mcp.ClientSession, message string) error {
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo",
		Arguments: map[string]string{"message": message}})
	if err == nil && answer.IsError {
		text, _ := json.Marshal(answer.Content)
		err = fmt.Errorf("the tool failed: %s", text)
	}
	return err
}

// callingProgram is a program that makes a batch of calls and returns how long each took.
func callingProgram(lang language, server string) string {
	if lang.id == "node" {
		return fmt.Sprintf(`import { callTool } from "./client/mcp_client.js";
const took = [];
for (let n = 0; n < %d; n++) {
  const began = performance.now();
  const answer = await callTool({ serverId: %q, name: "echo", arguments: { message: "message " + n } });
  took.push(performance.now() - began);
  if (!answer.ok) throw new Error(answer.error.message);
}
globalThis.result = took.slice(%d);
`, batchHeads+batch, server, batchHeads)
	}
	return fmt.Sprintf(`import time
from client.mcp_client import call_tool
took = []
for n in range(%d):
    began = time.perf_counter()
    answer = await call_tool(server_id=%q, name="echo", arguments={"message": f"message {n}"})
    took.append((time.perf_counter() - began) * 1000)
    assert answer["ok"], answer
result = took[%d:]
`, batchHeads+batch, server, batchHeads)
}
