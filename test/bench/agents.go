package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/broker/agents"
	"github.com/airlock-mcp/airlock/broker/audit"
	"github.com/airlock-mcp/airlock/broker/budget"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
)

// claims announces steps of one agent, each the next of its conversation.
type claims struct {
	service *agents.Service
	agent   string
	next    atomic.Int64
}

// measureAgents decides announced actions, durably, beside what one synced
// append to a file takes.
func measureAgents(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	c, err := openClaims(ctx, filepath.Join(b.home, "measured-agents"), &undo)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(b.home, "measured-agents", "synced"))
	if err != nil {
		return err
	}
	undo.Add(file.Close)
	taken, err := inTurn(ctx, b.rounds, 0,
		way{name: "verify_action", take: func(ctx context.Context) (sample, error) {
			return timed(func() error { return c.claim(ctx) })
		}},
		way{name: "synced append", take: func(context.Context) (sample, error) {
			return timed(func() error {
				if _, err := file.Write(make([]byte, 4096)); err != nil {
					return err
				}
				return file.Sync()
			})
		}})
	if err != nil {
		return err
	}
	rates, err := inTurn(ctx, max(4, b.rounds/perBatch), 0, way{name: "rate", take: c.rate})
	if err != nil {
		return err
	}
	plain := taken["synced append"]
	b.table.add(newRow("append to a file, synced", "ms", plain),
		newRow("verify_action, durable", "ms", taken["verify_action"]).aims("≤ 3").times(plain, "synced append"),
		newRates("verify_action, 16 callers at a time", "/s", rates["rate"]).aims("≥ 500"))
	return nil
}

func openClaims(ctx context.Context, dir string, undo *cleanup.Stack) (*claims, error) {
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		return nil, err
	}
	undo.Add(log.Close)
	db, err := database.Open(ctx, filepath.Join(dir, "state.db"), agents.Schema, agents.SchemaInherited)
	if err != nil {
		return nil, err
	}
	undo.Add(db.Close)
	service, err := agents.New(agents.Options{Database: db, Log: log})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { service.Close(); return nil })
	plenty := int64(1 << 40)
	agent, _, err := service.Register(ctx, agents.Registration{
		Name: "bench", Type: agents.Supervised, PrincipalID: "bench", Budget: budget.Limits{HourRequests: &plenty},
	}, "bench")
	return &claims{service: service, agent: agent.ID}, err
}

// stepsOfConversation are as many as one may have.
const stepsOfConversation = 50

func (c *claims) claim(ctx context.Context) error {
	n := c.next.Add(1) - 1
	action := fmt.Sprintf(`{"type": "calculate", "query": "%d + 1"}`, n)
	place := fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, n/stepsOfConversation, n%stepsOfConversation+1)
	d, err := c.service.VerifyAction(ctx, c.agent, json.RawMessage(action), json.RawMessage(place))
	if err == nil && d.Decision != agents.Approved && (d.Error == nil || d.Error.Code != agents.CodeReplay) { // a later step may be faster
		err = fmt.Errorf("step %d: %s %v", n, d.Decision, d.Error)
	}
	return err
}

// rate decides for 16 callers at a time and returns how many in a second.
func (c *claims) rate(ctx context.Context) (sample, error) {
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	const callers, each = 16, 50
	for range callers {
		all.Go(func() {
			for range each {
				if err := c.claim(ctx); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return sample{callers * each / time.Since(began).Seconds()}, nil
}
