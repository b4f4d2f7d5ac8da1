package escape_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// leastAttacks is how many attacks there must be at least.
const leastAttacks = 80

// TestAttacks runs every attack in a fresh sandbox, on every driver.
func TestAttacks(t *testing.T) {
	env := testenv.Sandbox(t)
	all := attacks(t)
	if len(all) < leastAttacks {
		t.Fatalf("got %d attacks, want at least %d", len(all), leastAttacks)
	}
	for name, driver := range drivers() {
		t.Run(name, func(t *testing.T) {
			l := openLab(t, env, driver(t, env))
			t.Run("fresh", func(t *testing.T) { attackAll(t, all, l) })
			t.Run("pooled", func(t *testing.T) { attackPool(t, all, l) })
		})
	}
}

// attackAll makes every attack beside one neighbour.
func attackAll(t *testing.T, all []attack, l *lab) {
	a := &arena{lab: l, neighbour: settle(t, l)}
	// The group ends when all attacks have ended; the neighbour outlives it.
	t.Run("attack", func(t *testing.T) {
		for _, one := range all {
			t.Run(one.name, func(t *testing.T) {
				t.Parallel()
				a.run(t, one)
			})
		}
	})
}

// attackPool makes every attack in sandboxes of one pool, restored from one
// saved sandbox and ready before they were asked for.
func attackPool(t *testing.T, all []attack, l *lab) {
	shared, err := l.openSandboxes(2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if left, err := shared.close(); err != nil || len(left) > 0 {
			t.Errorf("closing the pool: got %v and %q left, want nothing", err, left)
		}
	}()
	pooled := *l
	pooled.shared = shared
	t.Run("beside", func(t *testing.T) { attackAll(t, all, &pooled) })
}

// arena is the environment of attacks: a driver and a neighbour to disturb.
type arena struct {
	lab *lab

	mu        sync.Mutex // held while the neighbour works: attacks take turns to ask
	neighbour *neighbour
}

// run makes one attack and judges it.
func (r *arena) run(t *testing.T, a attack) {
	calls := &upstream{}
	s := r.lab.open(t, calls)
	b := lay(t, s.dir)
	p := a.program(t, b)
	disturbed := make(chan error, 1)
	go func() { disturbed <- r.disturb() }()
	outcome, err := s.orders.Run(t.Context(), orchestrator.Request{
		Language: p.language, Code: []byte(p.code), Timeout: a.timeout,
		Caller: caller.Caller{Principal: "attacker", Kind: caller.Local, Session: "attack"},
	})
	left, closeErr := s.close(r.lab)
	if closeErr != nil {
		t.Error(closeErr)
	}
	for _, what := range left {
		t.Errorf("left behind: %s", what)
	}
	if err := errors.Join(testenv.Receive(t, "the neighbour", disturbed), r.disturb()); err != nil {
		t.Errorf("a neighbour was disturbed: %v", err)
	}
	if err != nil {
		t.Fatalf("the sandbox did not start: %v", err)
	}
	got, err := out(outcome, calls.received())
	if err != nil {
		t.Fatal(err)
	}
	r.judge(t, a, b, got)
}

// disturb has the neighbour work, and reports whether it still does.
func (r *arena) disturb() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.neighbour.work()
}

func (r *arena) judge(t *testing.T, a attack, b *bait, got output) {
	t.Helper()
	o := oracle{secrets: hostFacts(), touched: b.touched()}
	o.secrets["the flag"] = b.flag
	o.secrets["the neighbour's flag"] = r.neighbour.flag
	gains := o.gains(got)
	holes := a.knownOn(r.lab.driver.Name())
	for _, gain := range gains {
		if !slices.ContainsFunc(holes, func(known string) bool { return isKnown(gain, known) }) {
			t.Errorf("a hole: %s", gain)
		}
	}
	for _, known := range holes {
		if !slices.ContainsFunc(gains, func(gain string) bool { return isKnown(gain, known) }) {
			t.Errorf("the hole %q is closed: remove it from the header", known)
		}
	}
	if a.foundBy != "" && got.source != a.foundBy {
		t.Errorf("the error was found by %q, want %q", got.source, a.foundBy)
	}
	if !slices.Contains(a.want, got.kind) {
		t.Errorf("the run ended with %s, want %s", got.kind, strings.Join(a.want, " or "))
	} else if got.kind == wantNothing {
		if err := tried(got); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%s", report(got))
}

func report(got output) string {
	return fmt.Sprintf("it printed:\n%.3000s\n%.3000s\n%.3000s", got.texts["stdout"], got.texts["stderr"],
		got.texts["the envelope"])
}
