package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// costed is how many fresh sandboxes are made for one measurement of what each
// costs: a processor's clock ticks a hundred times a second.
const costed = 20

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
			way{name: "airlock " + lang.id, take: func(ctx context.Context) (sample, error) { return airlock.cost(ctx, lang) }},
			way{name: "runsc " + lang.id, take: bundle.cost})
	}
	taken, err := inTurn(ctx, max(b.rounds/20, 1), 0, ways...)
	if err != nil {
		return err
	}
	for _, lang := range languages() {
		beside := taken["runsc "+lang.id]
		b.table.add(newRow("processor time of "+ofRunsc(lang), "ms", beside),
			newRow("processor time of a fresh "+lang.name+" sandbox through MCP", "ms", taken["airlock "+lang.id]).aims("≤ 45").times(beside, "`runsc run`"))
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
	return sample{milliseconds(after-before) / costed}, err
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

// clockTick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on Linux.
const clockTick = 10 * time.Millisecond

// processorTime is what a process and all its children that have ended took, of processors.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// Fields 14 to 17: utime, stime, cutime, cstime (proc(5)); what follows the
	// program's name, in brackets, begins with field 3.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[14-3 : 18-3] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * clockTick, nil
}
