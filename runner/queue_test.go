package runner_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

func TestACapAndAQueue(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient}
	r := newRunner(t, fake, runner.Options{MaxSandboxes: 3, MaxWaiting: 200})
	var wait sync.WaitGroup
	for range 200 {
		wait.Go(func() {
			s, err := r.Acquire(t.Context(), request())
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if _, most := fake.Alive(); most > 3 {
		t.Errorf("sandboxes at once: got %d, want at most 3", most)
	}
}

// Issue 23: runs of one account that sleep until their time limit leave a sandbox for another account.
func TestSleepingRunsLeaveASandbox(t *testing.T) {
	r := newRunner(t, &runnertest.Fake{Guest: patient}, runner.Options{Pool: -1})
	of := func(account string) runner.Request {
		req := request()
		req.Caller = account
		return req
	}
	waits, giveUp := context.WithCancel(t.Context())
	var queue sync.WaitGroup
	var held []*runner.Sandbox
	for n := range runner.DefaultSandboxes {
		if n == runner.DefaultSandboxes-1 {
			queue.Go(func() {
				if s, err := r.Acquire(waits, of("sleeper")); err == nil {
					t.Error("one account got all sandboxes")
					_ = s.Close()
				}
			})
			break
		}
		s, err := r.Acquire(t.Context(), of("sleeper"))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, s)
	}
	for r.Load().Waiting == 0 {
		runtime.Gosched()
	}
	s, err := r.Acquire(t.Context(), of("other"))
	if err != nil {
		t.Fatal(err)
	}
	giveUp()
	queue.Wait()
	for _, s := range append(held, s) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFullQueueIsBusy(t *testing.T) {
	r := newRunner(t, &runnertest.Fake{Guest: patient}, runner.Options{MaxSandboxes: 1, MaxWaiting: -1})
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Acquire(t.Context(), request()); !errors.Is(err, runner.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatalf("after one was closed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A caller whose turn does not come within QueueTimeout gives up. A caller whose sandbox
// takes longer than that to start gets it.
func TestQueueTimeoutEndsWithTheTurn(t *testing.T) {
	slow := func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return patient(ctx, g)
	}
	r := newRunner(t, &runnertest.Fake{Guest: slow}, runner.Options{MaxSandboxes: 1, Pool: -1})
	req := request()
	req.QueueTimeout = 500 * time.Millisecond
	s, err := r.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Acquire(t.Context(), req); !errors.Is(err, runner.ErrBusy) {
		t.Errorf("a caller whose turn does not come: got %v, want ErrBusy", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
