package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// chain is a running client of UTCP's code mode, see utcp/chain.mjs. Its programs run
// in isolates of the client's own process, which calls the tools, too.
type chain struct {
	in  io.Writer
	out *bufio.Reader
}

// openChain starts one with a target behind it.
func (b *bench) openChain(ctx context.Context, t target, undo *cleanup.Stack) (*chain, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	directory := filepath.Join(b.root, "test", "bench")
	cmd := exec.CommandContext(ctx, filepath.Join(directory, "node_modules", "node-linux-"+arch, "bin", "node"),
		append([]string{filepath.Join(directory, "utcp", "chain.mjs"), "target", t.command}, t.args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting UTCP's code mode: %w", err)
	}
	undo.Add(func() error { return errors.Join(in.Close(), cmd.Wait()) })
	return &chain{in, bufio.NewReader(out)}, nil
}

// run runs a program and decodes what it returned.
func (c *chain) run(program string, result any) error {
	line, err := json.Marshal(program)
	if err != nil {
		return err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("UTCP's code mode does not answer: %w", err)
	}
	var said struct {
		Result json.RawMessage
		Logs   []string
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return err
	}
	if len(said.Logs) > 0 {
		return fmt.Errorf("UTCP's code mode says %q", said.Logs)
	}
	return json.Unmarshal(said.Result, result)
}

// chained is how many calls the program makes that is compared: as many as a program
// often makes, so that the sandbox's own time is a part of the whole.
const chained = 20

// chainRounds is how often each way is taken.
const chainRounds = 100

// measureInstead takes the same program through Airlock's MCP face, with a sandbox kept
// ready, and through UTCP's code mode, in turn with the same calls by go-sdk, all on the same server.
func measureInstead(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	targets, err := b.targets()
	if err != nil {
		return err
	}
	ours := targets[0]
	airlock, err := b.openFace(ctx, inFrontOf(targets[:1]), &undo)
	if err != nil {
		return err
	}
	utcp, err := b.openChain(ctx, ours, &undo)
	if err != nil {
		return err
	}
	session, err := connect(ctx, exec.Command(ours.command, ours.args...))
	if err != nil {
		return err
	}
	undo.Add(session.Close)
	node := languages()[1]
	taken, err := inTurn(ctx, min(b.rounds, chainRounds), roundPause,
		way{name: "go-sdk", take: func(ctx context.Context) (sample, error) {
			return timed(func() error {
				for n := range chained {
					if err := callEcho(ctx, session, fmt.Sprintf("message %d", n)); err != nil {
						return err
					}
				}
				return nil
			})
		}},
		way{name: "utcp", take: func(context.Context) (sample, error) {
			return b.chained(func(done *int) error { return utcp.run(utcpProgram, done) })
		}},
		way{name: "airlock", take: func(ctx context.Context) (sample, error) {
			return b.chained(func(done *int) error { return airlock.run(ctx, node, nodeProgram, done) })
		}},
		way{name: "utcp trivial", take: func(context.Context) (sample, error) {
			return timed(func() error { return utcp.run("return 1", new(int)) })
		}},
		way{name: "airlock trivial", take: airlock.trivialRun(node)})
	if err != nil {
		return err
	}
	calls := fmt.Sprintf("%d tool calls, one after another", chained)
	b.table.add(newRow(calls+", by go-sdk", "ms", taken["go-sdk"]),
		newRow("a program with as many in UTCP's code mode", "ms", taken["utcp"]).times(taken["go-sdk"], "go-sdk"),
		newRow("the same through Airlock, Node from the pool", "ms", taken["airlock"]).times(
			taken["go-sdk"], "go-sdk").times(taken["utcp"], "UTCP"),
		newRow("a program that does nothing in UTCP's code mode", "ms", taken["utcp trivial"]),
		newRow("the same through Airlock, Node from the pool", "ms", taken["airlock trivial"]).times(
			taken["utcp trivial"], "UTCP"))
	return nil
}

// The same program for both.
var (
	utcpProgram = fmt.Sprintf(`let done = 0;
for (let n = 0; n < %d; n++) {
  const answer = target.target_echo({ message: "message " + n });
  if (answer) done++;
}
return done;`, chained)
	nodeProgram = fmt.Sprintf(`import { callTool } from "./client/mcp_client.js";
let done = 0;
for (let n = 0; n < %d; n++) {
  const answer = await callTool({ serverId: %q, name: "echo", arguments: { message: "message " + n } });
  if (answer.ok) done++;
}
globalThis.result = done;`, chained, serverID(0))
)

// chained times a program that has to make all its calls.
func (b *bench) chained(run func(done *int) error) (sample, error) {
	return timed(func() error {
		done := 0
		if err := run(&done); err != nil {
			return err
		}
		if done != chained {
			return fmt.Errorf("%d of %d calls were done", done, chained)
		}
		return nil
	})
}
