package orchestrator

import (
	"context"
	"errors"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// keptSession describes to the guest the number of files under /workspace/session, and the
// limits on them.
type keptSession struct {
	Files    int   `json:"files"` // that there are to load
	MaxFiles int   `json:"max_files"`
	MaxBytes int64 `json:"max_bytes"`
}

// openSession opens the session's files for the run. It returns nil if none are kept.
func (o *Orchestrator) openSession(p plan) *sessionfiles.Run {
	if o.parts.Sessions == nil || p.player != nil || p.request.Script != nil || p.identity.Caller.Session == "" {
		return nil
	}
	return o.parts.Sessions.Begin(p.identity.Caller.Owner())
}

func (r *run) keptSession() *keptSession {
	if r.session == nil || r.request.Alone {
		return nil
	}
	limits := r.session.Limits()
	return &keptSession{r.session.Files(), limits.Files, limits.Bytes}
}

// handleLoad hands out the next of the session's files.
func (r *run) handleLoad(req wire.Request) (any, error) {
	if err := decode(req, &struct{}{}); err != nil {
		return nil, err
	}
	if r.session == nil {
		return nil, wire.Violation("%s was sent, but there are no files", methodLoad)
	}
	pieces, more, err := r.session.Load()
	if errors.Is(err, sessionfiles.ErrTwice) {
		return nil, wire.Violation("%s was sent too often", methodLoad)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		Files []sessionfiles.Piece `json:"files"`
		More  bool                 `json:"more"`
	}{pieces, more}, nil
}

// handleSave accepts files that the code leaves to the next run of its session.
func (r *run) handleSave(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		Files   []sessionfiles.Piece `json:"files"`
		Removed []string             `json:"removed"`
		Last    bool                 `json:"last"`
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	if r.session == nil {
		return nil, wire.Violation("%s was sent, but no files are kept", methodSave)
	}
	err := r.session.Save(ctx, params.Files, params.Removed, params.Last)
	var limit *sessionfiles.LimitError
	switch {
	case errors.Is(err, sessionfiles.ErrTwice):
		return nil, wire.Violation("%s was sent too often", methodSave)
	case errors.As(err, &limit):
		return map[string]string{"problem": limit.Problem}, nil
	case err != nil:
		r.parts.Logger.ErrorContext(ctx, "the files of a session could not be kept",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		return map[string]string{"problem": "they could not be written; the run's ID leads to the cause in the log"},
			nil
	}
	return struct{}{}, nil
}
