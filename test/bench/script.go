package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// scripts are programs as models send them to the risk gateway.
var scripts = []struct{ name, code string }{
	{"a plain script", "print(2 + 2)"},
	{"a script with SymPy", "from sympy import symbols, expand\na, b = symbols('a b')\nprint(expand((a + b)**3))"},
	{"a script with Z3", "from z3 import Int, Solver\nx = Int('x')\ns = Solver()\ns.add(x > 5, x < 10)\n" +
		"print(s.check())"},
	{"a script with a guard", "from qwed_sdk.guards.system_guard import SystemGuard\n" +
		"print(SystemGuard().verify_shell_command('ls'))"},
}

// measureScripts takes scripts through the risk gateway, in turn with a verdict. A call of
// the gateway is an analysis of the code, which is a verdict, and the run of the script.
func measureScripts(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	image, err := images.Open(b.home, images.Verifier)
	if err != nil {
		return err
	}
	undo.Add(image.Close)
	service, err := b.openVerifications(image, &undo)
	if err != nil {
		return err
	}
	face, err := b.openVerb(ctx, []string{"mcp", "--face", "gateway"}, map[string]any{}, &undo,
		"QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	if err != nil {
		return err
	}
	ways := []way{{name: "verdict", take: fromSandbox(service, proofs[1].request)}}
	for _, s := range scripts {
		ways = append(ways, way{name: s.name, take: func(ctx context.Context) (sample, error) {
			return timed(func() error { return face.script(ctx, s.code) })
		}})
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, ways...)
	if err != nil {
		return err
	}
	b.table.add(newRow("a SymPy verdict from a fresh sandbox", "ms", taken["verdict"]))
	for _, s := range scripts {
		b.table.add(newRow("the gateway's answer to "+s.name, "ms", taken[s.name]).times(taken["verdict"], "a verdict"))
	}
	return nil
}

// script calls execute_python_code. A script that fails is an error.
func (f *face) script(ctx context.Context, code string) error {
	answer, err := f.session.CallTool(ctx, &mcp.CallToolParams{
		Name: "execute_python_code", Arguments: map[string]any{"code": code}})
	if err == nil && answer.IsError {
		err = fmt.Errorf("the script failed: %.300v", answer.Content[0])
	}
	return err
}

// Each burst is so many questions at once, after a pause in which the pool rests.
const (
	burst      = 16
	burstPause = 2 * time.Second
)

// together takes one measurement as often as a burst has, all at the same time.
func together(one func(context.Context) (sample, error)) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		took := make(sample, burst)
		asked, ctx := errgroup.WithContext(ctx)
		for n := range burst {
			asked.Go(func() error {
				got, err := one(ctx)
				if err == nil {
					took[n] = got[0]
				}
				return err
			})
		}
		return took, asked.Wait()
	}
}

// measureBursts asks for many verdicts, and for many scripts of the gateway, at once, in turn with one alone.
func measureBursts(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	image, err := images.Open(b.home, images.Verifier)
	if err != nil {
		return err
	}
	undo.Add(image.Close)
	service, err := b.openVerifications(image, &undo)
	if err != nil {
		return err
	}
	face, err := b.openVerb(ctx, []string{"mcp", "--face", "gateway"}, map[string]any{}, &undo,
		"QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	if err != nil {
		return err
	}
	verdict := fromSandbox(service, proofs[0].request)
	script := func(ctx context.Context) (sample, error) {
		return timed(func() error { return face.script(ctx, scripts[0].code) })
	}
	ways := []way{{name: "verdict", take: verdict}, {name: "verdicts", take: together(verdict)},
		{name: "script", take: script}, {name: "scripts", take: together(script)}}
	taken, err := inTurn(ctx, b.rounds, burstPause, ways...)
	if err != nil {
		return err
	}
	b.table.add(newRow("a Z3 verdict", "ms", taken["verdict"]),
		newRow(fmt.Sprintf("each of %d Z3 verdicts asked for at once", burst), "ms", taken["verdicts"]).times(
			taken["verdict"], "one verdict"),
		newRow("the gateway's answer to a plain script", "ms", taken["script"]),
		newRow(fmt.Sprintf("each of %d plain scripts sent to the gateway at once", burst), "ms",
			taken["scripts"]).times(
			taken["script"], "one script"))
	return nil
}
