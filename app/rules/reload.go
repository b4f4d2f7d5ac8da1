package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/integrity"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/filewatch"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// Reload reads the configuration and the policies again and puts all changes in force. If one of
// them has a mistake or needs a restart, nothing changes. The outcome is passed to Options.Notify
// and recorded in the audit log.
func (r *Rules) Reload(ctx context.Context) {
	if !r.reload(ctx, true) {
		r.opts.Notify(upstreams.Notice{
			Text: "the configuration and the policies are those in force: nothing has changed"})
	}
}

// reload is Reload. It reports whether it sent a notice. Unless asked is set, it does not notify
// about the same refusal twice.
func (r *Rules) reload(ctx context.Context, asked bool) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, err := r.putInForceLocked(ctx)
	before, wasRefused := r.Pending()
	isKnown := func() bool { return wasRefused && before.Text == r.refusal(err).Text }
	if err != nil && !asked && !isKnown() { // a file may be half-written
		select {
		case <-ctx.Done():
			return false
		case <-time.After(filewatch.Settle):
		}
		changed, err = r.putInForceLocked(ctx)
	}
	r.waits = nil
	if unconfirmed, ok := errors.AsType[*unconfirmedError](err); ok {
		r.waits = &unconfirmed.after
	}
	switch {
	case err != nil:
		if isKnown() && !asked {
			return false
		}
		r.tellRefused(ctx, err)
		return true
	case len(changed) == 0:
		if told = wasRefused; told {
			r.opts.Notify(upstreams.Notice{Text: "the configuration and the policies are again those in force"})
		}
	default:
		told = true
		r.opts.Notify(upstreams.Notice{Text: fmt.Sprintf("changed and in force: %s", strings.Join(changed, ", "))})
	}
	r.refused.Store(nil)
	return told
}

// putInForceLocked returns the keys that it put in force.
func (r *Rules) putInForceLocked(ctx context.Context) ([]string, error) {
	now := r.Config()
	next := now
	if r.opts.Reread != nil {
		var err error
		if next, err = r.opts.Reread(); err != nil {
			return nil, err
		}
	}
	live, restart := config.Changes(now, next)
	if r.opts.Host != 0 && r.ownProfileChanges(now, next) {
		restart = append(restart, "profiles")
	}
	if len(restart) > 0 {
		return nil, &restartError{restart}
	}
	read, err := Read(next)
	if err != nil {
		return nil, err
	}
	files, sources := read.files, sources(read.files)
	if sources != r.sources && !slices.Contains(live, "policies") {
		live = append(live, "policies")
	}
	if len(live) == 0 {
		r.adoptLocked(ctx, next, files)
		return nil, nil
	}
	if r.opts.Serving {
		before, after := trust.ContentOf(now, r.files), trust.ContentOf(next, files)
		if err := confirmed(ctx, r.opts.Directories.Home, r.opts.State, before, after); err != nil {
			return nil, err
		}
	}
	if found, err := integrity.Check(ctx, next, nil, false); err != nil || !found.Verified {
		return nil, cmp.Or(err, found.Err())
	}
	servers, err := r.opts.Servers.Catalog().Change(ctx, next)
	if err != nil {
		return nil, err
	}
	if err := r.opts.Admission.SetRules(ctx, read.Rules, setup.Principal(),
		"changed and in force: "+strings.Join(live, ", ")); err != nil {
		return nil, err
	}
	r.files, r.sources = files, sources
	r.config.Store(next)
	if err := r.opts.Servers.Apply(ctx, servers); err != nil {
		return nil, err
	}
	if r.changed != nil {
		r.changed(now, next)
	}
	return live, nil
}

// ownProfileChanges reports whether the one profile that all callers have is not the same any more.
// Servers outside of it are not connected.
func (r *Rules) ownProfileChanges(now, next *config.Config) bool {
	_, err := next.Profile(r.opts.Profile)
	return err != nil || now.DefaultProfile != next.DefaultProfile &&
		(r.opts.Profile == "" || r.opts.Profile == now.DefaultProfile)
}

// adoptLocked replaces the configuration in force by next if only its text differs, not its
// meaning. Clients compare the text of their file with the one in force. If the operator sealed or
// confirmed the previous text, adoptLocked does nothing.
func (r *Rules) adoptLocked(ctx context.Context, next *config.Config, files []policies.File) {
	now := r.Config()
	if next.Source() == now.Source() || !config.SameMeaning(now, next) {
		return
	}
	if found, err := integrity.Check(ctx, next, nil, false); err == nil && found.Verified {
		before, after := trust.ContentOf(now, r.files), trust.ContentOf(next, files)
		if r.opts.Serving && confirmed(ctx, r.opts.Directories.Home, r.opts.State, before, after) != nil {
			return // the next start reports it
		}
		r.files = files
		r.config.Store(next)
	}
}

// restartError has the changed keys that need a restart.
type restartError struct{ keys []string }

// Error names the keys.
func (e *restartError) Error() string {
	return strings.Join(e.keys, ", ") + " cannot change while Airlock serves"
}

// Hint returns the advice.
func (e *restartError) Hint() string {
	return "restart it (in the host: connect again), or take these changes back"
}

// refusal describes a change that is not in force because of err.
func (r *Rules) refusal(err error) upstreams.Notice {
	notice := upstreams.Notice{Text: fmt.Sprintf("a change is refused, and all rules stay as they were: %v", err)}
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		notice.Hint = advised.Hint()
	}
	return notice
}

// tellRefused notifies people that a change is refused and records it in the audit log.
func (r *Rules) tellRefused(ctx context.Context, err error) {
	notice := r.refusal(err)
	r.refused.Store(&notice)
	r.opts.Notify(notice)
	record := audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: setup.Principal()},
		Effect: audit.Effect{Outcome: audit.OutcomeRefused},
		Detail: "a changed configuration or policy has a mistake; the rules stay as they were",
	}
	if restart, ok := errors.AsType[*restartError](err); ok {
		record.Detail = "a change needs a restart, and the rules stay as they were: " + strings.Join(restart.keys, ", ")
	}
	if unconfirmed, ok := errors.AsType[*unconfirmedError](err); ok {
		record = unconfirmed.record()
	}
	if err := r.opts.Log.Append(ctx, record); err != nil {
		r.opts.Logger.ErrorContext(ctx, "a refused change is not recorded", slog.Any(telemetry.KeyError, err))
	}
}
