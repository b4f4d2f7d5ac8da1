package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// Calls are made so many at once, a few times in each program; the first time does not count.
const (
	atOnce      = 100
	atOnceTimes = 4
)

// measureAtOnce makes many calls at once from inside a sandbox, by gather and
// Promise.all, in turn with the same calls by go-sdk directly. The programs inside
// measure each time themselves.
func measureAtOnce(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	targets, err := b.targets()
	if err != nil {
		return err
	}
	target := targets[0]
	config := inFrontOf(targets[:1])
	config["limits"] = map[string]string{"rate": "100000/s", "toolRate": "100000/s"} // more than are made
	airlock, err := b.openFace(ctx, config, &undo)
	if err != nil {
		return err
	}
	session, err := connect(ctx, exec.Command(target.command, target.args...))
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", target.name, err)
	}
	undo.Add(session.Close)
	ways := []way{{name: "direct", take: directAtOnce(session)}}
	for _, lang := range languages() {
		ways = append(ways, way{name: lang.id, take: func(ctx context.Context) (sample, error) {
			var took sample
			return took, airlock.run(ctx, lang, programAtOnce(lang, serverID(0)), &took)
		}})
	}
	taken, err := inTurn(ctx, max(1, b.rounds/perBatch), roundPause, ways...)
	if err != nil {
		return err
	}
	plain := rates(taken["direct"])
	b.table.add(newRates(fmt.Sprintf("%d tool calls at once by go-sdk, %s", atOnce, target.name), "/s", plain))
	for _, lang := range languages() {
		b.table.add(newRates("the same from inside, "+lang.name, "/s", rates(taken[lang.id])).aims("≥ 0.8 ×").times(
			plain, "go-sdk"))
	}
	return nil
}

// rates turns how long a number of calls took, in milliseconds, into calls a second.
func rates(took sample) sample {
	perSecond := make(sample, len(took))
	for i, ms := range took {
		perSecond[i] = atOnce * 1000 / ms
	}
	return perSecond
}

func directAtOnce(session *mcp.ClientSession) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		var took sample
		for round := range atOnceTimes {
			got, err := timed(func() error {
				calls, ctx := errgroup.WithContext(ctx)
				for n := range atOnce {
					calls.Go(func() error { return callEcho(ctx, session, fmt.Sprintf("message %d of %d", n, round)) })
				}
				return calls.Wait()
			})
			if err != nil {
				return nil, err
			}
			took = append(took, got...)
		}
		return took[1:], nil
	}
}

// programAtOnce is a program that makes the calls and returns how long each time took.
func programAtOnce(lang language, server string) string {
	if lang.id == "node" {
		return fmt.Sprintf(`import { callTool } from "./client/mcp_client.js";
const took = [];
const call = (message) => callTool({ serverId: %q, name: "echo", arguments: { message } });
for (let round = 0; round < %d; round++) {
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: %d }, (_, n) => call("message " + n + " of " + round)));
  took.push(performance.now() - began);
  if (!answers.every((answer) => answer.ok)) throw new Error("a call failed");
}
globalThis.result = took.slice(1);
`, server, atOnceTimes, atOnce)
	}
	return fmt.Sprintf(`import asyncio
import time
from client.mcp_client import call_tool
took = []
for round in range(%d):
    began = time.perf_counter()
    calls = [call_tool(server_id=%q, name="echo", arguments={"message": f"message {n} of {round}"}) for n in range(%d)]
    answers = await asyncio.gather(*calls)
    took.append((time.perf_counter() - began) * 1000)
    assert all(answer["ok"] for answer in answers), answers
result = took[1:]
`, atOnceTimes, server, atOnce)
}
