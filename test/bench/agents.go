package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/models"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
)

// claims announces steps of one agent, each the next of its conversation.
type claims struct {
	acts     *admission.Service
	kernel   *kernel.Service
	database *database.DB
	plain    *sql.DB // the same file, without the writer of package database
	agent    string
	next     atomic.Int64
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
	rates, err := inTurn(ctx, max(4, b.rounds/perBatch), 0,
		way{name: "commit", take: bySixteen(c.commit)}, way{name: "transaction", take: bySixteen(c.transaction)},
		way{name: "decision", take: bySixteen(c.claim)},
		way{name: "list", take: bySixteen(c.list)},
		way{name: "write", take: bySixteen(c.write)})
	if err != nil {
		return err
	}
	plain, bare, alone := taken["synced append"], rates["commit"], rates["transaction"]
	b.table.add(newRow("append to a file, synced", "ms", plain),
		newRow("verify_action, durable", "ms", taken["verify_action"]).aims("≤ 3").times(plain, "synced append"),
		newRates("commit of one row, 16 callers at a time", "/s", bare),
		newRates("transaction of one row by SQLite, 16 callers at a time", "/s", alone),
		newRates("verify_action, 16 callers at a time", "/s", rates["decision"]).aims("≥ 500, ≥ 0.5 ×").times(
			bare, "bare commit").times(alone, "bare transaction"),
		newRates("kernel_execute file_list, 16 callers at a time", "/s", rates["list"]).aims("≥ 0.25 ×").times(
			bare, "bare commit").times(alone, "bare transaction"),
		newRates("kernel_execute file_write, 16 callers at a time", "/s", rates["write"]).aims("≥ 0.25 ×").times(
			bare, "bare commit").times(alone, "bare transaction"))
	return nil
}

func openClaims(ctx context.Context, dir string, undo *cleanup.Stack) (*claims, error) {
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		return nil, err
	}
	undo.Add(log.Close)
	db, err := database.Open(ctx, filepath.Join(dir, "state.db"), agents.Schema, vfs.Schema+iatp.Schema,
		agents.SchemaInherited, agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits,
		`CREATE TABLE bare (n INTEGER) STRICT`)
	if err != nil {
		return nil, err
	}
	undo.Add(db.Close)
	plain, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db")+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	undo.Add(plain.Close)
	plain.SetMaxOpenConns(1)
	service := agents.New(agents.Options{Database: db, Log: log})
	acts, err := admission.New(admission.Options{Log: log})
	if err != nil {
		return nil, err
	}
	end, err := acts.OpenAgents(admission.AgentOptions{Agents: service, Database: db})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { end(); return nil })
	plenty := int64(1 << 40)
	agent, _, err := service.Register(ctx, agents.Registration{
		Name: "bench", Type: agents.Supervised, PrincipalID: "bench", Budget: budget.Limits{HourRequests: &plenty},
	}, "bench")
	if err != nil {
		return nil, err
	}
	k, err := openKernel(db, service, acts, log)
	return &claims{acts: acts, kernel: k, database: db, plain: plain, agent: agent.ID}, err
}

// noDispatcher is for actions that the kernel carries out itself.
type noDispatcher struct{ kernel.Dispatcher }

// Risk returns false, because there are no tools.
func (noDispatcher) Risk(caller.Caller, string, string) (policies.Risk, bool) {
	return policies.RiskUnknown, false
}

func openKernel(db *database.DB, service *agents.Service, acts *admission.Service, log *audit.Log) (*kernel.Service,
	error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	trust, err := iatp.New(iatp.Options{Database: db, Agents: service, Log: log, Identity: agekey.Of(identity)})
	if err != nil {
		return nil, err
	}
	named, err := policies.LoadNamed()
	if err != nil {
		return nil, err
	}
	none, err := models.New(nil)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Options{
		Admission: acts, Agents: service, Log: log, Trust: trust, Policies: named, Models: none,
		Dispatcher: noDispatcher{},
		Files:      vfs.New(db, agekey.Of(identity), vfs.Limits{Files: 10, FileBytes: 1 << 20, Bytes: 1 << 20}, nil),
	})
}

// stepsOfConversation are as many as one may have.
const stepsOfConversation = 50

func (c *claims) claim(ctx context.Context) error {
	n := c.next.Add(1) - 1
	action := fmt.Sprintf(`{"type": "calculate", "query": "%d + 1"}`, n)
	place := fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, n/stepsOfConversation,
		n%stepsOfConversation+1)
	d, _, err := c.acts.Decide(ctx, admission.Act{Kind: admission.AnnouncedAction, Agent: c.agent,
		Arguments: json.RawMessage(action), Context: json.RawMessage(place)})
	// a later step may be faster
	if err == nil && d.Decision != admission.Approved && (d.Error == nil || d.Error.Code != admission.CodeReplay) {
		err = fmt.Errorf("step %d: %s %v", n, d.Decision, d.Error)
	}
	return err
}

func (c *claims) list(ctx context.Context) error { return c.execute(ctx, "file_list", `{}`) }

func (c *claims) write(ctx context.Context) error {
	return c.execute(ctx, "file_write", fmt.Sprintf(`{"path": "f%d", "content": "x"}`, c.next.Add(1)%8))
}

// execute has the kernel carry out an action.
func (c *claims) execute(ctx context.Context, action, params string) error {
	done, err := c.kernel.Execute(ctx, kernel.Actor{Caller: caller.Caller{Kind: caller.Local}}, kernel.Request{
		Action: action, Agent: c.agent, Params: json.RawMessage(params),
	})
	if err == nil && done.Status != "executed" {
		err = fmt.Errorf("the action %s: %+v", done.Status, done.Error)
	}
	return err
}

// transaction adds a row in a transaction that shares its commit with no other.
func (c *claims) transaction(ctx context.Context) error {
	_, err := c.plain.ExecContext(ctx, `INSERT INTO bare VALUES (?)`, c.next.Add(1))
	return err
}

// commit adds a row in a transaction with nothing else. Those of callers that wait share a commit.
func (c *claims) commit(ctx context.Context) error {
	return c.database.Update(ctx, func(tx database.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO bare VALUES (?)`, c.next.Add(1))
		return err
	})
}

// bySixteen returns how often 16 callers at a time do something in a second.
func bySixteen(do func(context.Context) error) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		var all sync.WaitGroup
		var failed atomic.Pointer[error]
		began := time.Now()
		const callers, each = 16, 50
		for range callers {
			all.Go(func() {
				for range each {
					if err := do(ctx); err != nil {
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
}
