package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// costed is how many fresh sandboxes are made for one measurement of what each
// costs: a processor's clock ticks a hundred times a second.
const costed = 10

// measureCost measures the processor time of a fresh sandbox with all that Airlock
// does for it, from its start to its removal, beside that of `runsc run`.
func measureCost(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	airlock, err := b.openFace(ctx, pooled(2), &undo)
	if err != nil {
		return err
	}
	var ways []way
	for _, lang := range languages() {
		bundle, err := b.openBundle(lang, &undo)
		if err != nil {
			return err
		}
		ways = append(ways,
			way{name: "airlock " + lang.id, take: func(ctx context.Context) (sample,
				error) {
				return airlock.cost(ctx, lang)
			}},
			way{name: "runsc " + lang.id, take: bundle.cost})
	}
	taken, err := inTurn(ctx, max(b.rounds/seldom, 1), 0, ways...)
	if err != nil {
		return err
	}
	for _, lang := range languages() {
		beside := taken["runsc "+lang.id]
		b.table.add(newRow("processor time of "+ofRunsc(lang), "ms", beside),
			newRow("processor time of a fresh "+lang.name+" sandbox through MCP", "ms", taken["airlock "+lang.id]).aims(
				"≤ 45").times(beside, "`runsc run`"))
	}
	return nil
}

// cost is the processor time of a trivial run, in milliseconds, that of the sandbox
// which takes the place of the used one in the pool included.
func (f *face) cost(ctx context.Context, lang language) (sample, error) {
	if err := settle(ctx, f.process.Pid); err != nil {
		return nil, err
	}
	before, err := processorTime(f.process.Pid)
	if err != nil {
		return nil, err
	}
	for range costed {
		if err := f.run(ctx, lang, lang.trivial, nil); err != nil {
			return nil, err
		}
	}
	if err := settle(ctx, f.process.Pid); err != nil {
		return nil, err
	}
	after, err := processorTime(f.process.Pid)
	return sample{(after - before) / costed}, err
}

// cost is the processor time of one `runsc run`, in milliseconds.
func (b *bundle) cost(ctx context.Context) (sample, error) {
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &before); err != nil {
		return nil, err
	}
	for range costed {
		if _, err := b.run(ctx); err != nil {
			return nil, err
		}
	}
	err := unix.Getrusage(unix.RUSAGE_CHILDREN, &after)
	spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	return sample{milliseconds(time.Duration(spent)) / costed}, err
}
