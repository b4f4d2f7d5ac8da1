package main

import (
	"context"
	"strings"

	"github.com/airlock-mcp/airlock/broker/redact"
)

// measureRedaction looks for secrets and personal data in text that looks as if
// it held some.
func measureRedaction(ctx context.Context, b *bench) error {
	text := []byte(strings.Repeat("The quick brown fox, 2026-01-02T03:04:05Z, id 123e4567-e89b-12d3-a456-426614174000, https://x.io/a?b=c\n", 10_000))
	redactor := redact.New()
	redactor.Hold("a-credential-of-ours")
	taken, err := inTurn(ctx, b.rounds, 0, way{name: "redact", take: func(context.Context) (sample, error) {
		return timed(func() error { redactor.Bytes(text); return nil })
	}})
	if err != nil {
		return err
	}
	// The rate that only so many exceed is that of the time that so many stay below.
	rates := newRow("redaction of text", "MB/s", taken["redact"])
	for _, at := range []*float64{&rates.P50, &rates.P95, &rates.P99} {
		*at = float64(len(text)) / 1e6 / (*at / 1000)
	}
	b.table.add(rates)
	return nil
}
