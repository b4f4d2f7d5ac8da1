package main

import (
	"context"
	"errors"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// seldom is of how many rounds one takes the ways that are slow.
const seldom = 4

// measureRuns takes a trivial run through the MCP face, with a sandbox kept
// ready, without, and on containerd, in turn with a fresh isolate of workerd for
// the same program, and with `runsc run` of the same image.
func measureRuns(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	workerd, err := b.openIsolates(&undo)
	if err != nil {
		return err
	}
	ready, err := b.openFace(ctx, pooled(2), &undo)
	if err != nil {
		return err
	}
	cold, err := b.openFace(ctx, pooled(0), &undo)
	if err != nil {
		return err
	}
	onContainerd, err := b.openContainerd(ctx, &undo)
	if err != nil {
		return err
	}
	ways := []way{{"workerd", workerd.trivialRun, 0}}
	for _, language := range []string{"python", "node"} {
		bundle, err := b.openBundle(language, &undo)
		if err != nil {
			return err
		}
		ways = append(ways,
			way{"runsc " + language, bundle.run, seldom},
			way{"cold " + language, cold.trivialRun(language), seldom},
			way{"containerd " + language, onContainerd.trivialRun(language), seldom},
			way{"ready " + language, ready.trivialRun(language), 0})
	}
	taken, err := inTurn(ctx, b.rounds, breath, ways...)
	if err != nil {
		return err
	}
	// workerd at its best: without the pause that lets processors and caches cool.
	atOnce, err := inTurn(ctx, b.rounds, 0, ways[0])
	if err != nil {
		return err
	}
	tellRuns(b.table, taken, atOnce["workerd"])
	return nil
}

func tellRuns(t *table, taken map[string]sample, atOnce sample) {
	workerd := taken["workerd"]
	t.add(newRow("trivial program in a fresh isolate of workerd", "ms", workerd),
		newRow("the same, one after another", "ms", atOnce))
	for _, language := range []struct{ name, key, program string }{
		{"Python", "python", "`runsc run` of `python3 -c pass`"}, {"Node", "node", "`runsc run` of `node -e 0`"},
	} {
		runsc, cold, containerd, ready := taken["runsc "+language.key], taken["cold "+language.key], taken["containerd "+language.key], taken["ready "+language.key]
		t.add(newRow(language.program+", the same image", "ms", runsc),
			newRow("trivial "+language.name+" run through MCP, no sandbox ready", "ms", cold).aims("≤ 110").times(runsc, "`runsc run`"),
			newRow("the same on containerd", "ms", containerd).times(runsc, "`runsc run`"),
			newRow("trivial "+language.name+" run through MCP, from the pool", "ms", ready).aims("≤ 3.7").
				times(workerd, "workerd").times(atOnce, "workerd one after another").times(runsc, "`runsc run`"))
	}
}
