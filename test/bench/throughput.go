package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// How throughput is measured: each node has a part of a processor with its sandboxes. PostgreSQL and the callers have
// the rest.
const (
	share           = 0.25 // of a processor, for each node
	callersOfNode   = 4
	throughputTurns = 6
	throughputHead  = time.Second // does not count
	throughputTime  = 5 * time.Second
	callsOfProgram  = 20
)

// demand is what the callers of one node do: one unit of work, counted as so many.
type demand struct {
	name, unit string
	take       []func(context.Context) error // for each caller of each node, those of the first node first
	counts     int
}

// measureThroughput compares three nodes with one of them, each with the same share of a processor.
func measureThroughput(ctx context.Context, f *fleet) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	tree, err := cgroup.Find()
	if err != nil {
		return err
	}
	settings := map[string]any{"sandbox": map[string]any{"pool": 1, "cpus": share}}
	acts := demand{name: "verify_action over HTTP", unit: "/s", counts: 1}
	programs := demand{name: fmt.Sprintf("tool calls of programs that make %d", callsOfProgram), unit: "/s",
		counts: callsOfProgram}
	for i := range 3 {
		n, err := f.node(fmt.Sprint("share-", i), settings, &undo)
		if err != nil {
			return err
		}
		if n.group, err = tree.New(fmt.Sprintf("airlock-bench-%d-%d", os.Getpid(), i),
			cgroup.Limits{CPUs: share}); err != nil {
			return err
		}
		undo.Add(func() error {
			ctx := context.Background()
			return errors.Join(n.group.Kill(ctx), n.group.Remove(ctx))
		})
		if err := n.start(ctx, &undo); err != nil {
			return err
		}
		for caller := range callersOfNode {
			token := f.tokens[i*callersOfNode%accounts+caller%2]
			w, err := n.register(ctx, token)
			if err != nil {
				return err
			}
			acts.take = append(acts.take, w.act)
			face, err := n.open(ctx, token, &undo)
			if err != nil {
				return err
			}
			programs.take = append(programs.take, func(ctx context.Context) error {
				return face.run(ctx, languages()[0], shortProgram, nil)
			})
		}
	}
	for _, l := range []demand{acts, programs} {
		var one, three sample
		for range throughputTurns {
			for _, side := range []struct {
				callers int
				rates   *sample
			}{{callersOfNode, &one}, {len(l.take), &three}} {
				rate, err := throughput(ctx, l.take[:side.callers])
				if err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				*side.rates = append(*side.rates, rate*float64(l.counts))
			}
		}
		held := fmt.Sprintf(", each node held to %.2f of a processor", share)
		f.table.add(newRates(l.name+", one node"+held, l.unit, one),
			newRates("the same, three nodes", l.unit, three).aims("≥ 2.7 ×").times(one, "one node"))
	}
	return nil
}

var shortProgram = fmt.Sprintf(`from client.mcp_client import call_tool
for n in range(%d):
    answer = await call_tool(server_id=%q, name="echo", arguments={"message": f"message {n}"})
    assert answer["ok"], answer
result = 1
`, callsOfProgram, serverID(0))

// throughput returns how often callers do something in a second. Each does it one after the other. What began before
// the end and ended after it counts in part.
func throughput(ctx context.Context, callers []func(context.Context) error) (float64, error) {
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	var mu sync.Mutex // guards done
	done := 0.
	from := time.Now().Add(throughputHead)
	until := from.Add(throughputTime)
	for _, call := range callers {
		all.Go(func() {
			for failed.Load() == nil && time.Now().Before(until) {
				began := time.Now()
				if err := call(ctx); err != nil {
					failed.Store(&err)
					return
				}
				ended := time.Now()
				mu.Lock()
				done += max(0, float64(earlier(ended, until).Sub(later(began, from)))/float64(ended.Sub(began)))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return done / throughputTime.Seconds(), nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
