package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/policies"
)

// nowhere keeps no record. Its calls cost what a call costs without a log.
type nowhere struct{}

func (nowhere) Append(context.Context, audit.Record) error   { return nil }
func (nowhere) Note(context.Context, audit.Record) error     { return nil }
func (nowhere) NoteSoon(audit.Record) error                  { return nil }
func (nowhere) NoteKept(context.Context, audit.Record) error { return nil }
func (nowhere) Sync() error                                  { return nil }
func (nowhere) Hash([]byte) string                           { return "" }
func (nowhere) Arguments(any) json.RawMessage                { return nil }

// recorder is what a broker and the admission of its calls write to.
type recorder interface {
	broker.Recorder
	admission.Log
}

var _ recorder = nowhere{}

// instant is a server that answers at once.
type instant struct{}

// Call answers with one line.
func (instant) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
}

// measureAudit makes calls through a broker that records them durably, in turn
// with the same calls through one that keeps no record.
func measureAudit(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	log, err := audit.Open(filepath.Join(b.home, "measured-audit"), nil)
	if err != nil {
		return err
	}
	undo.Add(log.Close)
	var ways []way
	atOnce := []int{1, 16}
	for _, callers := range atOnce {
		for name, records := range map[string]recorder{"durable": log, "nowhere": nowhere{}} {
			session, err := openCalls(records)
			if err != nil {
				return err
			}
			ways = append(ways, way{name: fmt.Sprint(name, callers), take: func(ctx context.Context) (sample, error) {
				return callAtOnce(ctx, session, callers)
			}})
		}
	}
	taken, err := inTurn(ctx, max(1, b.rounds/perBatch), 0, ways...)
	if err != nil {
		return err
	}
	for _, callers := range atOnce {
		what := fmt.Sprintf("call through the broker, %d at a time", callers)
		plain := taken[fmt.Sprint("nowhere", callers)]
		b.table.add(newRow(what+", no record", "ms", plain),
			newRow(what+", recorded durably", "ms", taken[fmt.Sprint("durable", callers)]).aims("≤ +1").adds(
				plain, "without"))
	}
	return nil
}

// openCalls returns the calls of a run at a broker whose limits do not matter here.
func openCalls(records recorder) (*broker.RunCalls, error) {
	engine, err := policies.Load(policies.Default())
	if err != nil {
		return nil, err
	}
	const plenty = 1 << 40
	often := admission.Rate{Calls: plenty, Per: time.Second}
	acts, err := admission.New(admission.Options{Log: records, Rules: admission.Rules{
		Policies: engine, Operator: policies.Operator{"target": {TrustAnnotations: true}},
		Limits: admission.Limits{Calls: plenty, SessionCalls: plenty, Repeats: plenty, BytesIn: plenty,
			BytesOut:   plenty,
			ServerRate: often, ToolRate: often},
	}})
	if err != nil {
		return nil, err
	}
	made, err := broker.New(instant{}, records, acts, nil)
	if err != nil {
		return nil, err
	}
	tools, err := toolList{"echo", []byte(echoTools)}.parse("target")
	if err != nil {
		return nil, err
	}
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "target", Tools: tools}})
	if err != nil {
		return nil, err
	}
	return made.Open(broker.Run{ID: "run_bench", Caller: caller.Caller{Principal: "bench", Kind: caller.Local,
		Session: "ses_bench"}}, snapshot, nil)
}

// callAtOnce makes a batch of calls by each of so many callers.
func callAtOnce(ctx context.Context, calls *broker.RunCalls, callers int) (sample, error) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards both
	var taken sample
	var failed error
	for range callers {
		all.Go(func() {
			for n := range batch {
				got, err := timed(func() error {
					answer := calls.Call(ctx, broker.Call{ServerID: "target", Name: "echo",
						Arguments: fmt.Appendf(nil, `{"message":"message %d"}`, n)})
					if !answer.OK {
						return errors.New(answer.Error.Message)
					}
					return nil
				})
				mu.Lock()
				taken, failed = append(taken, got...), errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return taken, failed
}
