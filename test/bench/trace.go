package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// step is one part of a call, which ends when something happens.
type step struct {
	name string
	// event ends it: the first of this name behind the end of the step before. Where it is empty, what the
	// program inside has noted under the number does.
	event  string
	inside int
}

// The times that the program inside records for each call.
const (
	insideCalled   = iota // the program makes the call
	insideSends           // the client has made the request and is about to send it
	insideReceived        // the client has received the answer
	insideHad             // the program has the result
	insideMarks
)

// nothing is the event of a step in which nothing is done, so that it shows what a probe costs.
const nothing = "nothing"

// steps are what a call goes through, one after the other.
func steps() []step {
	return []step{
		{name: "inside: the client makes the request", inside: insideSends},
		{name: "gVisor sends it, Airlock is woken and reads", event: "read"},
		{name: "from the reader to the handler", event: "handled"},
		{name: "tool found, arguments validated, limits, policies", event: "decided"},
		{name: "the record, and the arguments kept beside it", event: "recorded"},
		{name: "lock, names and new records of others looked for", event: "looked"},
		{name: "record and position encoded, hashed, written", event: "written"},
		{name: "fdatasync", event: "durable"},
		{name: "(nothing, but for the probe)", event: nothing},
		{name: "session of the server, request encoded", event: "line"},
		{name: "written to stdin, the server is woken, reads, decodes", event: "server"},
		{name: "it answers, Airlock is woken and reads", event: "answer"},
		{name: "decoded, and handed to the handler", event: "accepted"},
		{name: "result validated, cleaned, counted", event: "concluded"},
		{name: "outcome recorded, kept for a replay", event: "out"},
		{name: "written, gVisor wakes the program, which receives", inside: insideReceived},
		{name: "inside: decoded, and handed to the program", inside: insideHad},
	}
}

// traceProbes are the places at which the steps end.
func traceProbes(airlock, server string) []probe {
	const module = "github.com/airlock-mcp/airlock/"
	return []probe{
		{"read", airlock, module + "internal/wire.ParseRequest"},
		{"handled", airlock, module + "broker.(*RunCalls).CallUnread"},
		{"decided", airlock, module + "broker.(*attempt).intend"},
		{"recorded", airlock, module + "audit.(*appender).write"},
		{"looked", airlock, module + "audit.(*appender).append"},
		{"written", airlock, module + "audit.(*storage).sync"},
		{"durable", airlock, module + "broker.(*attempt).act"},
		{nothing, airlock, module + "broker.(*attempt).callServer"},
		{"line", airlock, module + "broker/upstream.(*lineWriter).try"},
		{"server", server, "main.echo"},
		{"answer", airlock, module + "broker/upstream.parseLine"},
		{"accepted", airlock, module + "broker/upstream.(*server).accept"},
		{"concluded", airlock, module + "broker.(*attempt).conclude"},
		{"out", airlock, module + "internal/wire.(*answers).write"},
	}
}

// measureTrace takes calls that are made alone from inside a sandbox apart, by the times at which functions
// of Airlock and of the server begin, and by those that the program and its client note.
func measureTrace(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	targets, err := b.targets()
	if err != nil {
		return err
	}
	airlock, err := b.openFace(ctx, inFrontOf(targets[:1]), &undo)
	if err != nil {
		return err
	}
	places, err := newProbes(traceProbes(b.bin("airlock"), targets[0].command))
	if err != nil {
		return fmt.Errorf("setting probes, for which it takes root, and tracefs at %s: %w", tracing, err)
	}
	undo.Add(places.close)
	for _, lang := range languages() {
		t := &trace{parts: make([]sample, len(steps()))}
		for round := -warmUps; round < max(1, b.rounds/perBatch); round++ {
			if err := t.take(ctx, airlock, places, lang, round >= 0); err != nil {
				return err
			}
		}
		t.show(b.table, lang)
	}
	return nil
}

// trace is how long calls took, and each of their parts, in milliseconds.
type trace struct {
	whole sample
	parts []sample
}

// take adds a batch of calls, if it counts.
func (t *trace) take(ctx context.Context, airlock *face, places *probes, lang language, counts bool) error {
	var inside [][insideMarks]int64
	events, err := places.during(func() error {
		return airlock.run(ctx, lang, tracedProgram(lang, serverID(0)), &inside)
	})
	if err != nil {
		return err
	}
	ahead, err := realtimeAhead()
	if err != nil {
		return err
	}
	for _, marks := range inside {
		for i := range marks {
			marks[i] -= ahead
		}
		if !counts {
			continue
		}
		if err := t.add(marks, events); err != nil {
			return err
		}
	}
	return rest(ctx, roundPause)
}

// add takes one call apart.
func (t *trace) add(inside [insideMarks]int64, events []event) error {
	at, end := inside[insideCalled], inside[insideHad]
	for i, step := range steps() {
		next := inside[step.inside]
		if step.event != "" {
			found := false
			for _, e := range events {
				if found = e.name == step.event && e.at >= at-resolution && e.at <= end; found {
					next = e.at
					break
				}
			}
			if !found {
				return fmt.Errorf("a call has no event %q where one is due", step.event)
			}
		}
		t.parts[i] = append(t.parts[i], float64(next-at)/1e6)
		at = next
	}
	t.whole = append(t.whole, float64(end-inside[insideCalled])/1e6)
	return nil
}

// show adds the whole, its parts without what probes cost, and what is left between the median of the
// whole and those of the parts.
func (t *trace) show(to *table, lang language) {
	to.add(newRow("a call from inside, "+lang.name+", with the probes", "ms", t.whole))
	cost := 0.
	for i, step := range steps() {
		if step.event == nothing {
			cost = t.parts[i].quantile(.5)
		}
	}
	probes, sum := sample{0}, 0.
	for i, step := range steps() {
		part := t.parts[i]
		if step.event != "" {
			part = part.minus(cost)
			probes[0] += cost
		}
		if step.event == nothing {
			continue
		}
		r := newRow("its part: "+step.name, "ms", part)
		sum += r.P50
		to.add(r)
	}
	to.add(newRow(fmt.Sprintf("its part: the probes, %s ms each", figure(cost)), "ms", probes))
	sum += probes[0]
	to.add(newRow("what the medians of the parts leave of the whole's", "ms", sample{t.whole.quantile(.5) - sum}))
}

// minus returns the sample with each value less by something.
func (s sample) minus(n float64) sample {
	less := make(sample, len(s))
	for i, v := range s {
		less[i] = v - n
	}
	return less
}

// realtimeAhead is how many nanoseconds CLOCK_REALTIME, which is the host's in a sandbox, is ahead of CLOCK_MONOTONIC.
func realtimeAhead() (int64, error) {
	var ahead int64
	for least, n := int64(0), 0; n < 100; n++ {
		var before, real, after unix.Timespec
		if err := errors.Join(unix.ClockGettime(unix.CLOCK_MONOTONIC, &before),
			unix.ClockGettime(unix.CLOCK_REALTIME, &real),
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)); err != nil {
			return 0, err
		}
		if took := after.Nano() - before.Nano(); n == 0 || took < least {
			least, ahead = took, real.Nano()-before.Nano()-took/2
		}
	}
	return ahead, nil
}
