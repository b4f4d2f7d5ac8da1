package verify_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/verify"
)

// none has no sandboxes; it records the callers of Acquire.
type none struct{ callers []string }

func (n *none) Acquire(_ context.Context, req runner.Request) (*runner.Sandbox, error) {
	n.callers = append(n.callers, req.Caller)
	return nil, runner.ErrBusy
}

func (n *none) Warm(runner.Request) {}

// Callers that wait for a verification take turns, so the queue gets the caller.
func TestSandboxesAreAskedForByTheCaller(t *testing.T) {
	sandboxes := &none{}
	service, err := verify.New(sandboxes, runner.Image{Name: "verify"},
		&verify.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	for _, account := range []string{"ann", "bob"} {
		request := math("1 = 1")
		request.Caller = account
		if _, err := service.Verify(t.Context(), request); !errors.Is(err, verify.ErrBusy) {
			t.Errorf("%s: got %v, want ErrBusy", account, err)
		}
	}
	if got := sandboxes.callers; len(got) != 2 || got[0] != "ann" || got[1] != "bob" {
		t.Errorf("got %q, want ann and bob", got)
	}
}
