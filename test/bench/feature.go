package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/test/telemetry"
)

// featureBlock is how many runs one block has: processor time is known for blocks
// only, since the system counts it in hundredths of a second.
const featureBlock = 10

// observed is an Airlock whose runs are measured, and what they took.
type observed struct {
	name string
	face *face

	waited sample // milliseconds of each run
	spent  sample // milliseconds of processor time of a run, of each block
}

// measureTelemetry takes runs from the pool of two Airlocks in turn, of which one exports
// traces, metrics and logs to a real OpenTelemetry Collector.
func measureTelemetry(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	collector, err := telemetry.StartCollector(ctx, b.bin("otelcol"), b.home)
	if err != nil {
		return err
	}
	undo.Add(func() error { collector.Kill(); return nil })
	// Metrics are sent as often as traces, more often than by default.
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.Endpoint, "OTEL_METRIC_EXPORT_INTERVAL=5000"}
	return measureFeature(ctx, b, "telemetry", func(config map[string]any, on bool) (*face, error) {
		if !on {
			return b.openFace(ctx, config, &undo)
		}
		return b.openFace(ctx, config, &undo, env...)
	})
}

// measureSuspension takes runs that never wait for a person from the pool of two Airlocks in turn, of which one
// suspends runs that do.
func measureSuspension(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	return measureFeature(ctx, b, "suspension", func(config map[string]any, on bool) (*face, error) {
		config["runs"] = map[string]any{"suspendAfter": map[bool]string{false: "0s", true: "20ms"}[on]}
		return b.openFace(ctx, config, &undo)
	})
}

// measureFeature takes runs from the pool of two Airlocks in turn, of which one has a feature on. open starts an
// Airlock with a configuration.
func measureFeature(ctx context.Context, b *bench, feature string,
	open func(config map[string]any, on bool) (*face, error)) error {
	targets, err := b.targets()
	if err != nil {
		return err
	}
	python := languages()[0]
	for _, program := range []struct{ name, code string }{
		{"trivial Python run from the pool", python.trivial},
		{fmt.Sprintf("Python run from the pool with %d tool calls", batchHeads+batch),
			callingProgram(python, serverID(0))},
	} {
		sides := []*observed{{name: feature + " off"}, {name: feature + " on"}}
		for i, side := range sides {
			if side.face, err = open(inFrontOf(targets[:1]), i == 1); err != nil {
				return err
			}
		}
		if err := inBlocks(ctx, max(2, b.rounds/featureBlock), python, program.code, sides); err != nil {
			return err
		}
		off, on := sides[0], sides[1]
		b.table.add(newRow(program.name+", "+off.name, "ms", off.waited),
			newRow("the same, "+on.name, "ms", on.waited).aims("≤ 1.05 ×").times(off.waited, "off"),
			newRow("processor time of such a run, "+off.name, "ms", off.spent),
			newRow("the same, "+on.name, "ms", on.spent).aims("≤ 1.05 ×").times(off.spent, "off"))
	}
	return nil
}

// inBlocks takes runs of all sides in turn. The first block does not count.
func inBlocks(ctx context.Context, blocks int, lang language, code string, sides []*observed) error {
	order := rand.New(rand.NewPCG(1, 2))
	for block := -1; block < blocks; block++ {
		before, err := processorTimes(sides)
		if err != nil {
			return err
		}
		for range featureBlock {
			for _, i := range order.Perm(len(sides)) {
				side := sides[i]
				waited, err := timed(func() error { return side.face.run(ctx, lang, code, nil) })
				if err != nil {
					return fmt.Errorf("%s: %w", side.name, err)
				}
				if block >= 0 {
					side.waited = append(side.waited, waited...)
				}
				if err := rest(ctx, roundPause); err != nil { // in which the pool is filled again
					return err
				}
			}
		}
		after, err := processorTimes(sides)
		if err != nil {
			return err
		}
		for i, side := range sides {
			if block >= 0 {
				side.spent = append(side.spent, (after[i]-before[i])/featureBlock)
			}
		}
	}
	return nil
}

// processorTimes is what each side has taken until now.
func processorTimes(sides []*observed) ([]float64, error) {
	var all []float64
	for _, side := range sides {
		taken, err := processorTime(side.face.process.Pid)
		if err != nil {
			return nil, err
		}
		all = append(all, taken)
	}
	return all, nil
}

// processorTime is what a process and those of its children that have ended have taken,
// in milliseconds (proc_pid_stat(5)).
func processorTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const perTick = 10 // USER_HZ is 100 on every architecture that Airlock runs on
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	sum := 0.0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		sum += ticks * perTick
	}
	return sum, nil
}
