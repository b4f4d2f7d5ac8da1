package admission_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// victimVariable holds the state of the process that is killed: its directory, the ID of its agent,
// the number of its first conversation, and before which record of a cost it kills itself; 0: none.
// If that number is negative, the log also loses the kept records, as when a machine stops.
const victimVariable = "AIRLOCK_TEST_AGENTS_VICTIM"

// price is what each action of the victim costs.
const price = budget.USD / 100

// noon is the clock of all processes, so that no day ends during the test.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// victim has the services that are killed.
type victim struct {
	*agents.Service
	acts *admission.Service
}

// openState opens the service on the state in a directory. end closes everything.
func openState(ctx context.Context, dir string, wrap func(admission.Log) admission.Log) (_ *victim, end func() error,
	err error) {
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		return nil, nil, err
	}
	acts := admission.Log(log)
	if wrap != nil {
		acts = wrap(log)
	}
	db, err := databasetest.Open(ctx, filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	registry := agents.New(agents.Options{Database: db, Log: log, Now: noon})
	s, err := admission.New(admission.Options{Log: acts, Now: noon})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(), log.Close())
	}
	stop, err := s.OpenAgents(admission.AgentOptions{Agents: registry, Database: db,
		Prices: admission.Prices{Default: price, Second: price}})
	if err == nil {
		err = s.Reconcile(ctx, func(ids []string) (map[string]bool, bool, error) {
			return agents.Debits(filepath.Join(dir, "audit"), ids)
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(), log.Close())
	}
	return &victim{registry, s}, func() error { stop(); return errors.Join(db.Close(), log.Close()) }, nil
}

// dying is a log whose process kills itself before it writes the record of a cost.
type dying struct {
	admission.Log
	left  *int // records of costs until then
	loses bool // what need not be on stable storage
}

func (d dying) count(r audit.Record) {
	if r.CostUSD == "" {
		return
	}
	if *d.left--; *d.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d dying) Append(ctx context.Context, r audit.Record) error {
	d.count(r)
	return d.Log.Append(ctx, r)
}

func (d dying) Note(ctx context.Context, r audit.Record) error {
	d.count(r)
	return d.Log.Note(ctx, r)
}

func (d dying) NoteKept(ctx context.Context, r audit.Record) error {
	if d.count(r); d.loses {
		return nil
	}
	return d.Log.NoteKept(ctx, r)
}

// claim announces one step of a conversation.
func claim(ctx context.Context, s *victim, agent string, conversation, step int) (admission.Ruling, error) {
	r, _, err := s.acts.Decide(ctx, announced(agent, action("calculate", fmt.Sprint(step)),
		fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, conversation, step)))
	return r, err
}

// perform makes the call of a step of a conversation instead of announcing it.
func perform(ctx context.Context, s *victim, agent string, conversation, step int) (admission.Ruling, error) {
	r, grant, err := s.acts.Decide(ctx, admission.Act{
		Kind: admission.Run, Agent: agent, Longest: 3 * time.Second,
		Arguments: json.RawMessage(fmt.Sprintf(`{"code": "%d"}`, step)),
		Context:   json.RawMessage(fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, conversation, step)),
	})
	if err == nil {
		err = grant.End(ctx, true, 0)
	}
	return r, err
}

// TestVictim is the process that TestNoStepAndNoCentIsLost kills: it prints each
// step once it is approved.
func TestVictim(t *testing.T) {
	state := strings.Fields(os.Getenv(victimVariable))
	if len(state) != 4 {
		t.Skip("is a part of TestNoStepAndNoCentIsLost")
	}
	var first, left int
	fmt.Sscan(state[2], &first)
	fmt.Sscan(state[3], &left)
	loses := left < 0
	left = max(left, -left)
	s, _, err := openState(t.Context(), state[0], func(log admission.Log) admission.Log {
		return dying{log, &left, loses}
	})
	if err != nil {
		t.Fatal(err)
	}
	for conversation := first; ; conversation++ {
		for step := 1; step <= 50; step++ {
			do := claim
			if step%2 == 0 {
				do = perform
			}
			d, err := do(t.Context(), s, state[1], conversation, step)
			if err != nil || d.Decision != admission.Approved {
				t.Fatalf("%+v, %v", d, err)
			}
			fmt.Printf("step %d %d\n", conversation, step)
		}
	}
}

// TestNoStepAndNoCentIsLost kills a process repeatedly while it commits announced and real steps.
// Approved steps stay committed and are debited exactly once.
func TestNoStepAndNoCentIsLost(t *testing.T) {
	dir := t.TempDir()
	id := registerVictim(t, dir)
	conversation, approved := 0, map[[2]int]bool{}
	for n := range 16 {
		before := 0 // killed from outside
		if n%2 == 1 {
			before = n // killed between a debit or a refund and its record
		}
		if n%4 == 3 {
			before = -n // and the records before it are lost
		}
		for _, at := range killed(t, fmt.Sprintf("%s %s %d %d", dir, id, conversation, before)) {
			approved[at] = true
			conversation = max(conversation, at[0]+1)
		}
		conversation++ // one may have been started without output
	}
	if len(approved) == 0 {
		t.Fatal("no step was approved before any kill")
	}
	s, end, err := openState(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	standing, err := s.Budget(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for at := range approved {
		d, err := claim(t.Context(), s, id, at[0], at[1])
		if err != nil || d.Error == nil || d.Error.Code != admission.CodeReplay {
			t.Errorf("step %v was approved and is free again: %+v, %v", at, d, err)
		}
	}
	// A step may have been committed right before its process died.
	committed := standing.Day.Requests
	if committed < int64(len(approved)) || committed > int64(len(approved)+16) {
		t.Errorf("%d steps were approved, the ledger has %d", len(approved), committed)
	}
	// The log has each debit and each refund once, also those that a process did not live to record.
	ids, found, recorded := map[string]bool{}, 0, budget.Amount(0)
	if err := audit.Tail(t.Context(), filepath.Join(dir, "audit"), 1<<20, false, func(r audit.Record) error {
		if r.CostUSD == "" {
			return nil
		}
		if r.DebitID == "" || ids[r.DebitID] {
			t.Errorf("the debit %q is recorded twice, or has no ID", r.DebitID)
		}
		ids[r.DebitID] = true
		if strings.HasPrefix(r.Detail, "found at the start") {
			found++
		}
		cost, err := budget.ParseAmount(strings.TrimPrefix(r.CostUSD, "-"))
		if strings.HasPrefix(r.CostUSD, "-") {
			cost = -cost
		}
		recorded += cost
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if standing.Day.Cost != recorded || recorded == 0 {
		t.Errorf("the ledger has %s, the log %s", standing.Day.Cost, recorded)
	}
	if found < 4+3+7+11+15 {
		t.Errorf("%d debits were found at a start, want one for each of 4 kills before a record, and all of 4 others",
			found)
	}
	if report, err := audit.Verify(filepath.Join(dir, "audit"), nil); err != nil || !report.OK() {
		t.Errorf("the audit log: %+v, %v", report, err)
	}
}

func registerVictim(t *testing.T, dir string) (id string) {
	t.Helper()
	s, end, err := openState(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	many, dollars := int64(1<<40), 1_000_000*budget.USD
	a, _, err := s.Register(t.Context(), agents.Registration{
		Name: "victim", Type: agents.Supervised, PrincipalID: "ann",
		Budget: budget.Limits{HourRequests: &many, DayCost: &dollars},
	}, "ann")
	if err := errors.Join(err, end()); err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// killed starts a victim, kills it after some of its steps, and returns the printed steps.
func killed(t *testing.T, state string) (steps [][2]int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^TestVictim$")
	cmd.Env = append(os.Environ(), victimVariable+"="+state)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after := rand.IntN(60)
	if !strings.HasSuffix(state, " 0") {
		after = -1 // it kills itself
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var at [2]int
		if _, err := fmt.Sscanf(lines.Text(), "step %d %d", &at[0], &at[1]); err != nil {
			t.Fatalf("the victim: %s", lines.Text())
		}
		if steps = append(steps, at); len(steps) == after+1 {
			time.AfterFunc(time.Duration(rand.IntN(int(5*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait() // it was killed
	return steps
}
