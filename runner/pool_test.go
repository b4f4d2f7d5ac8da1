package runner_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// restored is a guest that goes on from a template: it was ready before.
func restored(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
	if _, err := g.Stdin.ReadString('\n'); err != nil {
		return runner.Exit{Code: 1}
	}
	<-ctx.Done()
	return runner.Exit{}
}

func alive(fake *runnertest.Fake) int {
	now, _ := fake.Alive()
	return now
}

func TestPoolIsFilledFromATemplate(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 2})
	r.Warm(request())
	testenv.Await(t, "two sandboxes wait", func() bool {
		made, _, starts := fake.Templates()
		return made == 1 && starts == 2 && alive(fake) == 2
	})
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "the taken one is replaced", func() bool { return alive(fake) == 3 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, closed, _ := fake.Templates(); made != closed {
		t.Errorf("templates: got %d made and %d closed", made, closed)
	}
}

func TestWithoutAPoolTheThirdRunStartsFromATemplate(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: -1, Save: true})
	run := func() {
		t.Helper()
		s, err := r.Acquire(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Begin(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	r.Warm(request()) // nothing is to be kept ready
	run()
	if made, _, _ := fake.Templates(); made != 0 {
		t.Errorf("templates after one run: got %d, want none", made)
	}
	testenv.Await(t, "one starts from what was saved", func() bool {
		run()
		_, _, starts := fake.Templates()
		return starts > 0
	})
	if r.Pooled() != 0 {
		t.Errorf("waiting: got %d, want none", r.Pooled())
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, closed, _ := fake.Templates(); made != 1 || closed != 1 {
		t.Errorf("templates: got %d made and %d closed, want 1", made, closed)
	}
}

func TestWithoutAPoolAnUnusedTemplateIsClosed(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: -1, Save: true, PoolIdle: 100 * time.Millisecond})
	testenv.Await(t, "a template is made", func() bool {
		s, err := r.Acquire(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		made, _, _ := fake.Templates()
		return made > 0
	})
	testenv.Await(t, "it is closed", func() bool { made, closed, _ := fake.Templates(); return closed == made })
}

func TestPoolSavesNothingOfAnImageThatForbidsIt(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 2})
	req := request()
	req.Image.Unsaved = true
	r.Warm(req)
	testenv.Await(t, "two sandboxes wait", func() bool { return alive(fake) == 2 })
	if made, _, starts := fake.Templates(); made != 0 || starts != 0 {
		t.Errorf("got %d templates and %d sandboxes from them, want none", made, starts)
	}
}

func TestPoolNeverGivesOneTwice(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 3, MaxSandboxes: 4, MaxWaiting: 100})
	var mu sync.Mutex
	seen := map[string]bool{}
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			s, err := r.Acquire(t.Context(), request())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			if seen[s.ID()] {
				t.Errorf("sandbox %s was given out twice", s.ID())
			}
			seen[s.ID()] = true
			mu.Unlock()
			if err := s.Begin(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if len(seen) != 100 {
		t.Errorf("sandboxes: got %d, want 100", len(seen))
	}
}

func TestPoolKeepsRequestsApart(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 1})
	other := request()
	other.Image.Digest = "sha256:other"
	for _, req := range []runner.Request{request(), other, request(), other} {
		s, err := r.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err) // the fake refuses a template of another image
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPoolReplacesWhatDiedWaiting(t *testing.T) {
	die := make(chan struct{})
	mortal := func(ctx context.Context, _ *runnertest.GuestIO) runner.Exit {
		select {
		case <-die:
		case <-ctx.Done():
		}
		return runner.Exit{Code: 1}
	}
	fake := &runnertest.Fake{Guest: patient, Restored: mortal}
	r := newRunner(t, fake, runner.Options{Pool: 1})
	r.Warm(request())
	testenv.Await(t, "one waits", func() bool { _, _, starts := fake.Templates(); return starts == 1 })
	close(die)
	// The next sandbox is not the one that died, or the fake's next, which
	// dies too: but it was alive when it was given out, or is reported as ended.
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPoolWithoutTemplates(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, SaveErr: errors.New("cannot save")}
	r := newRunner(t, fake, runner.Options{Pool: 2})
	r.Warm(request())
	// The failure to save is reported; the next request starts from the beginning.
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "two wait beside the one in use", func() bool { r.Warm(request()); return alive(fake) >= 3 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPoolKeepsToItsMemory(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	// The template takes 1 MiB, a fake sandbox 1 MiB, and one being started is taken for 64 MiB.
	r := newRunner(t, fake, runner.Options{Pool: 8, PoolMemory: 3 << 20})
	r.Warm(request())
	testenv.Await(t, "the first wait", func() bool { return alive(fake) >= 2 })
	if _, most := fake.Alive(); most > 3 {
		t.Errorf("sandboxes: got %d, want at most 3 in 3 MiB", most)
	}
}

func TestPoolShrinksWhenIdle(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 1, MaxSandboxes: 6, PoolIdle: time.Millisecond})
	var used []*runner.Sandbox
	for range 6 { // at once, so that the pool is found empty and grows
		s, err := r.Acquire(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, s)
	}
	if _, most := fake.Alive(); most < 6 {
		t.Fatalf("sandboxes under load: got %d, want at least 6", most)
	}
	for _, s := range used {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	testenv.Await(t, "one waits, and the template is kept", func() bool {
		made, closed, _ := fake.Templates()
		return alive(fake) == 1 && made == 1 && closed == 0
	})
}

func TestPoolDropsAnOlderKindWhenIdle(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 1, PoolIdle: time.Millisecond})
	newer := request()
	newer.Image.Digest = "sha256:newer"
	for _, req := range []runner.Request{request(), newer} {
		s, err := r.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, "one more waits", func() bool { return alive(fake) >= 2 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	testenv.Await(t, "one kind is left", func() bool {
		made, closed, _ := fake.Templates()
		return alive(fake) == 1 && made == 2 && closed == 1
	})
}

func TestPoolKeepsMoreUnderLoad(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 1, MaxSandboxes: 4, PoolIdle: time.Hour})
	for range 4 {
		s, err := r.Acquire(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	testenv.Await(t, "more than one wait beside the four in use", func() bool { return alive(fake) > 5 })
}

func TestCloseWhileThePoolFills(t *testing.T) {
	for range 20 {
		fake := &runnertest.Fake{Guest: patient, Restored: restored}
		r := newRunner(t, fake, runner.Options{Pool: 3})
		r.Warm(request())
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if made, closed, _ := fake.Templates(); alive(fake) != 0 || made != closed {
			t.Errorf("after Close: got %d sandboxes, %d templates made and %d closed", alive(fake), made, closed)
		}
	}
}

// Issue 26: under a burst the pool grows with the requests that found nothing ready, beyond the sandboxes that
// can be in use at once.
func TestPoolGrowsWithDemand(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient, Restored: restored}
	r := newRunner(t, fake, runner.Options{Pool: 1, MaxSandboxes: 2, MaxWaiting: 5})
	for range 50 { // bursts: each request finds less ready than the one before
		var burst sync.WaitGroup
		for range 7 {
			burst.Go(func() {
				s, err := r.Acquire(t.Context(), request())
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(s.Begin(), s.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		burst.Wait()
	}
	testenv.Await(t, "more wait than can be in use", func() bool { return r.Pooled() > 2 })
	if got := r.Pooled(); got > 7 {
		t.Errorf("waiting: got %d, want at most one for each request that can be in use or in the queue", got)
	}
}

// behind is a patient guest that is not ready before opened is closed.
func behind(opened <-chan struct{}) runnertest.Guest {
	return func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
		select {
		case <-opened:
		case <-ctx.Done():
		}
		return patient(ctx, g)
	}
}

// acquireAtOnce acquires n sandboxes, which are closed at the end of the test. The group is done when it has them all.
func acquireAtOnce(t *testing.T, r *runner.Runner, req runner.Request, n int) *sync.WaitGroup {
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() {
			s, err := r.Acquire(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = s.Close() })
		})
	}
	return &waiting
}

// Issue 32: while runs wait for as many starts as there are processors, nothing is started to be kept ready.
func TestStartsThatRunsWaitForComeFirst(t *testing.T) {
	opened := make(chan struct{})
	fake := &runnertest.Fake{Guest: behind(opened)}
	processors := max(2, runtime.GOMAXPROCS(0))
	r := newRunner(t, fake, runner.Options{Pool: 1, MaxSandboxes: processors})
	req := request()
	req.Image.Fresh = true
	waiting := acquireAtOnce(t, r, req, processors)
	testenv.Await(t, "each run has its own start", func() bool { return alive(fake) == processors })
	r.Warm(req)
	time.Sleep(100 * time.Millisecond) // longer than a refill waits
	if got := alive(fake); got != processors {
		t.Errorf("got %d starts, want the %d that runs wait for", got, processors)
	}
	close(opened)
	waiting.Wait()
	testenv.Await(t, "one is kept ready", func() bool { return r.Pooled() > 0 })
}

// Issue 32: while the starts for one kind took all processors, the others got nothing, and nobody came back to them.
func TestEachKindIsKeptReady(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient}
	r := newRunner(t, fake, runner.Options{Pool: 2})
	for _, digest := range []string{"sha256:first", "sha256:second", "sha256:third"} {
		req := request()
		req.Image.Fresh, req.Image.Digest = true, digest
		r.Warm(req)
	}
	testenv.Await(t, "two of each kind wait", func() bool { return r.Pooled() == 6 })
}

// Issue 26: sandboxes that a burst of one kind left do not keep the base of another kind from being started.
func TestPoolMakesRoomForAnotherKind(t *testing.T) {
	opened := make(chan struct{})
	fake := &runnertest.Fake{Guest: behind(opened), Restored: restored}
	// A template and a sandbox take 1 MiB each, the first start of a kind counts as 64 MiB.
	r := newRunner(t, fake, runner.Options{Pool: 1, MaxSandboxes: 8, PoolMemory: 5 << 20})
	other := request()
	other.Image.Digest = "sha256:other"
	waiting := acquireAtOnce(t, r, request(), 4)
	// One start may be that for the template. Each other one is for a request that found nothing ready, so that the
	// pool is to keep one more.
	testenv.Await(t, "four starts are under way", func() bool { return alive(fake) >= 4 })
	close(opened)
	waiting.Wait()
	testenv.Await(t, "the first kind fills the memory", func() bool { return r.Pooled() >= 4 })
	_, _, before := fake.Templates()
	testenv.Await(t, "one of the other kind is saved and started", func() bool {
		r.Warm(other)
		made, _, starts := fake.Templates()
		return made == 2 && starts > before
	})
}
