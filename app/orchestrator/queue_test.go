package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/runner"
)

// A caller that asks for more runs than all sandboxes and the whole queue can take does
// not keep another's run out.
func TestOneCallerLeavesRoomInTheQueue(t *testing.T) {
	over := make(chan struct{})
	l := newLab(t, nil, admission.Limits{}, Options{}, func(ctx context.Context, c *conn) error {
		select {
		case <-over:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	type answer struct {
		account string
		err     error
	}
	answers := make(chan answer)
	ask := func(account string) {
		_, err := l.Run(t.Context(), Request{Language: "python", Code: []byte("play"),
			Caller: caller.Caller{Kind: caller.Agent, Registrar: account}})
		answers <- answer{account, err}
	}
	await := func(places int) {
		for load := l.parts.Runner.Load(); load.InUse+load.Waiting < places; load = l.parts.Runner.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	const places = runner.DefaultSandboxes + runner.DefaultWaiting
	for range places - 1 { // one sandbox is reserved for others
		go ask("ann")
	}
	await(places - 1)
	go ask("bob") // has that sandbox
	await(places)
	go ask("bob")
	if first := <-answers; first.account != "ann" || !errors.Is(first.err, runner.ErrBusy) {
		t.Errorf("got %+v, want a run of ann's refused", first)
	}
	close(over)
	for range places {
		if a := <-answers; a.err != nil {
			t.Errorf("a run of %s: %v", a.account, a.err)
		}
	}
}
