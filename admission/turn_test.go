package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// Issue 24, item 3: the large requests of an account's agents take one turn after the other, and in
// the long run a quarter of a processor. Small requests, and those of others, do not wait for them.
func TestTheTimeOfAssessmentsIsBoundedPerAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &agentGate{assessing: quota.New(quota.For(quota.Assessments)),
			assessed: quota.New(quota.For(quota.AssessedTime))}
		assess := func(ctx context.Context, owner string, size int, took time.Duration) error {
			e := &evaluation{agentGate: gate, agent: agents.Agent{ID: "agent_" + owner, Owner: owner}}
			done, err := e.awaitTurn(ctx, size)
			if err == nil {
				<-time.After(took) // in the time of the bubble
				done()
			}
			return err
		}
		began := time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if err := assess(t.Context(), "mallory", 1<<20, 5*time.Second); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		err := errors.Join(assess(t.Context(), "mallory", smallInput, 0), assess(t.Context(), "ann", 1<<20, 0))
		if err != nil || time.Since(began) != 0 {
			t.Errorf("others waited %v, %v", time.Since(began), err)
		}
		callers.Wait()
		// 100 s of processor time less the 10 s at once, in a quarter of the time. The last one is
		// charged when it has ended.
		if took := time.Since(began); took < 300*time.Second || took > 420*time.Second {
			t.Errorf("100 s of assessments took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := assess(ctx, "mallory", 1<<20, 0); err == nil {
			t.Error("a request does not wait for what the account has used")
		}
		if used, waiting := gate.assessing.Load(); used+waiting != 0 {
			t.Errorf("%d turns are in use after all have ended", used+waiting)
		}
	})
}
