package admission_test

import (
	"errors"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
)

// the limiter in memory, whose window slides.
func TestTheWindowSlides(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := admission.NewWindow(2, time.Minute, func() time.Time { return now })
	for _, turn := range []struct {
		after time.Duration
		key   string
		want  error
	}{
		{0, "ann", nil},
		{30 * time.Second, "ann", nil},
		{0, "ann", admission.ErrTooOften},
		{0, "bob", nil},
		{29 * time.Second, "ann", admission.ErrTooOften},
		{time.Second, "ann", nil}, // the first is a minute ago
		{0, "ann", admission.ErrTooOften},
		{-time.Hour, "ann", nil}, // the clock is set back
	} {
		now = now.Add(turn.after)
		if got := w.Allow(t.Context(), turn.key); !errors.Is(got, turn.want) {
			t.Errorf("%s at %s: %v, want %v", turn.key, now.Format(time.TimeOnly), got, turn.want)
		}
	}
}
