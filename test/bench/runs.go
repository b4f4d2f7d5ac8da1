package main

import (
	"context"
	"errors"
	"strings"
	"time"

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
	isolate := way{name: "workerd", take: workerd.trivialRun(languages()[1])}
	ways, err := b.waysToRun(ctx, &undo)
	if err != nil {
		return err
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, append(ways, isolate)...)
	if err != nil {
		return err
	}
	// workerd at its best: without the pause in which processors and caches cool.
	atOnce, err := inTurn(ctx, b.rounds, 0, isolate)
	if err != nil {
		return err
	}
	tellRuns(b.table, taken, atOnce[isolate.name])
	return nil
}

// waysToRun are the ways of Airlock and of runsc.
func (b *bench) waysToRun(ctx context.Context, undo *cleanup.Stack) ([]way, error) {
	ready, err := b.openFace(ctx, pooled(2), undo)
	if err != nil {
		return nil, err
	}
	cold, err := b.openFace(ctx, pooled(0), undo)
	if err != nil {
		return nil, err
	}
	first := func(lang language) func(context.Context) (sample, error) {
		return func(ctx context.Context) (sample, error) { return b.firstRun(ctx, lang) }
	}
	containerd, err := b.openContainerd(ctx, undo)
	if err != nil {
		return nil, err
	}
	var ways []way
	for _, lang := range languages() {
		bundle, err := b.openBundle(lang, undo)
		if err != nil {
			return nil, err
		}
		ways = append(ways,
			way{"runsc " + lang.id, bundle.run, seldom},
			way{"first " + lang.id, first(lang), seldom},
			way{"cold " + lang.id, cold.trivialRun(lang), seldom},
			way{"containerd " + lang.id, containerd.trivialRun(lang), seldom},
			way{"ready " + lang.id, ready.trivialRun(lang), 0})
	}
	return ways, nil
}

// firstRun is how long a host waits for the first run of an Airlock that keeps no
// sandbox ready and has saved none.
func (b *bench) firstRun(ctx context.Context, lang language) (took sample, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	airlock, err := b.openFace(ctx, pooled(0), &undo)
	if err != nil {
		return nil, err
	}
	// Wait until everything that is opened concurrently with the face is open.
	if err := rest(ctx, time.Second); err != nil {
		return nil, err
	}
	return airlock.trivialRun(lang)(ctx)
}

func tellRuns(t *table, taken map[string]sample, atOnce sample) {
	workerd := taken["workerd"]
	t.add(newRow("trivial program in a fresh isolate of workerd", "ms", workerd),
		newRow("the same, one after another", "ms", atOnce))
	for _, lang := range languages() {
		runsc, what := taken["runsc "+lang.id], "trivial "+lang.name+" run through MCP, "
		t.add(newRow(ofRunsc(lang)+", the same image", "ms", runsc),
			newRow(what+"the first of an Airlock", "ms", taken["first "+lang.id]).times(runsc, "`runsc run`"),
			newRow(what+"none kept ready, a saved one", "ms", taken["cold "+lang.id]).aims("≤ 110").times(
				runsc, "`runsc run`"),
			newRow(what+"on containerd", "ms", taken["containerd "+lang.id]).times(runsc, "`runsc run`"),
			newRow(what+"from the pool", "ms", taken["ready "+lang.id]).aims(lang.fromPool).
				times(workerd, "workerd").times(atOnce, "workerd one after another").times(runsc, "`runsc run`"))
	}
}

// ofRunsc names what is measured beside runs.
func ofRunsc(lang language) string { return "`runsc run` of `" + strings.Join(lang.nothing, " ") + "`" }
