package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// refusals logs why tokens are refused. It does not write to the audit log, whose records are
// durable and kept, because a client without a token could fill it.
type refusals struct {
	logger *slog.Logger
	limits *logLimits // by reason
}

func newRefusals(logger *slog.Logger) *refusals {
	return &refusals{logger, newLogLimits()}
}

// note counts a refused token, and logs it unless the limit of its reason is reached. Of the
// text of the token it logs only a key ID and an issuer that have the usual form.
func (l *refusals) note(ctx context.Context, err error) {
	reason, _ := auth.ReasonOf(err)
	telemetry.CountRefusedToken(ctx, string(reason))
	unlogged, ok := l.limits.named(string(reason)).take()
	if !ok {
		return
	}
	attributes := []slog.Attr{slog.String("reason", string(reason))}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, slog.String(key, value))
		}
	}
	if p, ok := ctx.Value(requestKey{}).(*request); ok {
		add("network", p.network)
	}
	if told, ok := errors.AsType[*auth.InvalidError](err); ok {
		add("token_id", told.TokenID)
		add("claimed_key_id", told.KeyID)
		add("claimed_issuer", told.Issuer)
	}
	var lacks *auth.ScopeError
	if errors.As(err, &lacks) { // the token is valid, so the caller is known
		add("scope", lacks.Scope)
		add("caller", lacks.Caller.Name())
	}
	l.logger.LogAttrs(ctx, slog.LevelWarn, "a token was refused", append(attributes, unlogged...)...)
}

// unreadPause is the minimum time between two lines about an issuer that cannot be reached.
// Forged tokens can cause an attempt to read its keys every ten seconds.
const unreadPause = 10 * time.Minute

// unreadKeys returns a function that logs why the issuer's keys cannot be read: as a warning
// while the known keys are still accepted, so that an operator can act before tokens are
// refused, and as an error after that.
func unreadKeys(logger *slog.Logger) func(err error, known time.Duration) {
	warned, failed := rate.Sometimes{Interval: unreadPause}, rate.Sometimes{Interval: unreadPause}
	return func(err error, known time.Duration) {
		if known > 0 {
			warned.Do(func() {
				logger.WarnContext(context.Background(),
					"the issuer's keys cannot be read again: those that are known count for a while",
					slog.Any("error", err), slog.Duration("count_for", known.Round(time.Second)))
			})
			return
		}
		failed.Do(func() {
			logger.ErrorContext(context.Background(), "the issuer's keys cannot be read: none of its tokens counts",
				slog.Any("error", err))
		})
	}
}
