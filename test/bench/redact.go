package main

import (
	"context"
	"strings"

	"github.com/airlock-mcp/airlock/redact"
)

// measureRedaction looks for secrets and personal data in text that looks as if
// it held some.
func measureRedaction(ctx context.Context, b *bench) error {
	text := []byte(strings.Repeat(
		"The quick brown fox, 2026-01-02T03:04:05Z, id 123e4567-e89b-12d3-a456-426614174000, https://x.io/a?b=c\n",
		10_000))
	redactor := redact.New()
	redactor.Hold("a-credential-of-ours")
	taken, err := inTurn(ctx, b.rounds, 0, way{name: "redact", take: func(context.Context) (sample, error) {
		return timed(func() error { redactor.Bytes(text); return nil })
	}})
	if err != nil {
		return err
	}
	var rates sample // in millions of bytes a second
	for _, took := range taken["redact"] {
		rates = append(rates, float64(len(text))/1e6/(took/1000))
	}
	b.table.add(newRates("redaction of text", "MB/s", rates))
	return nil
}
