package engines

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/verify"
)

// verifierAt is a verifier whose state is in home.
func verifierAt(home string) *Verifier {
	return New(Options{Config: config.Default(), Home: home, Logger: slog.New(slog.DiscardHandler)})
}

var sum = verify.Request{Engine: "math", Arguments: json.RawMessage(`{"expression":"2+2=4"}`)}

func TestVerifierWithoutItsImageSaysWhatToRun(t *testing.T) {
	v := verifierAt(t.TempDir())
	for range 2 { // the second request looks for the image again
		_, err := v.Verify(t.Context(), sum)
		var advised interface{ Hint() string }
		if !errors.Is(err, images.ErrNotBuilt) || !errors.As(err, &advised) ||
			advised.Hint() != "run `airlock images build verify`" {
			t.Errorf("got %v, want that the image is not built, with a hint", err)
		}
		if err := v.Warm(); !errors.Is(err, images.ErrNotBuilt) {
			t.Errorf("Warm: got %v, want %v", err, images.ErrNotBuilt)
		}
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func TestVerifierOpensAtTheFirstRequestAndEndsWithTheSystem(t *testing.T) {
	env := testenv.Sandbox(t)
	t.Setenv("AIRLOCK_RUNSC", env.Runsc)
	v := verifierAt(env.Home)
	if v.service != nil {
		t.Error("it is open before the first request")
	}
	verdict, err := v.Verify(t.Context(), sum)
	if err != nil || verdict.Status != verify.Verified {
		t.Errorf("got %+v, %v, want VERIFIED", verdict, err)
	}
	for range 2 {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := v.Verify(t.Context(), sum); !errors.Is(err, verify.ErrClosed) {
		t.Errorf("after the end: got %v, want %v", err, verify.ErrClosed)
	}
}
