package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// How often a token that is refused is logged, for each reason. The metric counts all.
const (
	refusalsAtOnce = 5
	refusalsPause  = 10 * time.Second // then one more
)

// refusals tells the operator why tokens are refused. They stand in the log and not in
// the audit log: its records are durable and kept, and a client without a token could fill it.
type refusals struct {
	logger *slog.Logger

	mu sync.Mutex
	of map[auth.Reason]*refusalsOf // as many as there are reasons
}

type refusalsOf struct {
	rate     *rate.Limiter
	unlogged int // since the last that was logged
}

func newRefusals(logger *slog.Logger) *refusals {
	return &refusals{logger: logger, of: map[auth.Reason]*refusalsOf{}}
}

// note counts a token that was refused by an error, and logs it unless many were. Nothing
// is logged that the token says of itself, but for a key ID and an issuer of the usual form.
func (l *refusals) note(ctx context.Context, err error) {
	reason, _ := auth.ReasonOf(err)
	telemetry.CountRefusedToken(ctx, string(reason))
	unlogged, ok := l.take(reason)
	if !ok {
		return
	}
	attributes := []slog.Attr{slog.String("reason", string(reason))}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, slog.String(key, value))
		}
	}
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		add("network", p.network)
	}
	var told *auth.InvalidError
	if errors.As(err, &told) {
		add("token_id", told.TokenID)
		add("claimed_key_id", told.KeyID)
		add("claimed_issuer", told.Issuer)
	}
	var lacks *auth.ScopeError
	if errors.As(err, &lacks) { // this caller has proved who it is
		add("scope", lacks.Scope)
		add("caller", lacks.Caller.Name())
	}
	if unlogged > 0 {
		attributes = append(attributes, slog.Int("not_logged", unlogged))
	}
	l.logger.LogAttrs(ctx, slog.LevelWarn, "a token was refused", attributes...)
}

// take reports whether one more may be logged for a reason now, and how many were not
// since the last.
func (l *refusals) take(reason auth.Reason) (unlogged int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.of[reason]
	if mine == nil {
		mine = &refusalsOf{rate: rate.NewLimiter(rate.Every(refusalsPause), refusalsAtOnce)}
		l.of[reason] = mine
	}
	if !mine.rate.Allow() {
		mine.unlogged++
		return 0, false
	}
	unlogged, mine.unlogged = mine.unlogged, 0
	return unlogged, true
}
