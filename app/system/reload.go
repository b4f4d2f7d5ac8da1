package system

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/integrity"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/filewatch"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// rules has the operator's rules that are in force.
type rules struct {
	mu      sync.Mutex                     // one reload at a time
	files   []policies.File                // as they were read
	sources [sha256.Size]byte              // of the policy files
	changed func(before, c *config.Config) // called when another configuration is in force; nil is not

	config  atomic.Pointer[config.Config]
	refused atomic.Pointer[upstreams.Notice] // why the files as they are now are not in force; nil if they are
}

// readRules reads the rules of the configuration c and of its policy files.
func readRules(c *config.Config) (admission.Rules, []policies.File, error) {
	files, err := PolicyFiles(c)
	if err != nil {
		return admission.Rules{}, nil, err
	}
	engine, err := policies.Load(files...)
	if err != nil {
		return admission.Rules{}, nil, err
	}
	if rule, problem := engine.WithRoles(RoleNames(c)).UnknownRole(); problem != "" {
		return admission.Rules{}, nil, &setup.Error{Err: fmt.Errorf("%s:%d: %s", rule.File, rule.Line, problem),
			Advice: "write auth.roles: {NAME: {groups: [GROUP]}} in the configuration"}
	}
	operator, err := OperatorSettings(c)
	rules := admission.Rules{Policies: engine, Operator: operator, Limits: callLimits(c),
		Profiles: map[string]*catalog.Profile{}, Elicitation: map[string]bool{}}
	for _, profile := range c.Profiles {
		rules.Profiles[profile.Name] = profile
	}
	for _, server := range c.Servers {
		rules.Elicitation[server.ID] = server.Settings.Elicitation
	}
	return rules, files, err
}

// sources digests policy files, to notice that one has changed.
func sources(files []policies.File) [sha256.Size]byte {
	hash := sha256.New()
	for _, file := range files {
		digest := sha256.Sum256(file.Source)
		hash.Write([]byte(file.Name)) // never fails
		hash.Write(digest[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// Config returns the configuration that is in force.
func (s *System) Config() *config.Config { return s.rules.config.Load() }

// Pending returns why the configuration and the policies as they are now are not in force, and what
// to do about it. It returns false if they are in force.
func (s *System) Pending() (upstreams.Notice, bool) {
	if refused := s.rules.refused.Load(); refused != nil {
		return *refused, true
	}
	return upstreams.Notice{}, false
}

// OnConfig sets a function that is called after another configuration was put in force. It must be
// called before Watch and Reload.
func (s *System) OnConfig(changed func(before, now *config.Config)) { s.rules.changed = changed }

// Reload reads the configuration and the policies again and puts all changes in force. If one of
// them has a mistake or needs a restart, nothing changes. The outcome is passed to Options.Notify
// and recorded in the audit log.
func (s *System) Reload(ctx context.Context) {
	if !s.reload(ctx, true) {
		s.opts.Notify(upstreams.Notice{
			Text: "the configuration and the policies are those in force: nothing has changed"})
	}
}

// reload is Reload. It reports whether it sent a notice. Unless asked is set, it does not notify
// about the same refusal twice.
func (s *System) reload(ctx context.Context, asked bool) (told bool) {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	changed, err := s.putInForceLocked(ctx)
	before, wasRefused := s.Pending()
	isKnown := func() bool { return wasRefused && before.Text == s.refusal(err).Text }
	if err != nil && !asked && !isKnown() { // a file may be half-written
		select {
		case <-ctx.Done():
			return false
		case <-time.After(filewatch.Settle):
		}
		changed, err = s.putInForceLocked(ctx)
	}
	switch {
	case err != nil:
		if isKnown() && !asked {
			return false
		}
		s.tellRefused(ctx, err)
		return true
	case len(changed) == 0:
		if told = wasRefused; told {
			s.opts.Notify(upstreams.Notice{Text: "the configuration and the policies are again those in force"})
		}
	default:
		told = true
		s.opts.Notify(upstreams.Notice{Text: fmt.Sprintf("changed and in force: %s", strings.Join(changed, ", "))})
	}
	s.rules.refused.Store(nil)
	return told
}

// putInForceLocked returns the keys that it put in force.
func (s *System) putInForceLocked(ctx context.Context) ([]string, error) {
	now := s.Config()
	next := now
	if s.opts.Reread != nil {
		var err error
		if next, err = s.opts.Reread(); err != nil {
			return nil, err
		}
	}
	live, restart := config.Changes(now, next)
	if s.opts.Host != 0 && s.ownProfileChanges(now, next) {
		restart = append(restart, "profiles")
	}
	if len(restart) > 0 {
		return nil, &restartError{restart}
	}
	rules, files, err := readRules(next)
	if err != nil {
		return nil, err
	}
	sources := sources(files)
	if sources != s.rules.sources && !slices.Contains(live, "policies") {
		live = append(live, "policies")
	}
	if len(live) == 0 {
		s.adoptLocked(ctx, next, files)
		return nil, nil
	}
	if s.opts.Serving {
		before, after := trust.ContentOf(now, s.rules.files), trust.ContentOf(next, files)
		if err := s.confirmed(ctx, before, after); err != nil {
			return nil, err
		}
	}
	if found, err := integrity.Check(ctx, next, nil, false); err != nil || !found.Verified {
		return nil, cmp.Or(err, found.Err())
	}
	servers, err := s.catalog.Change(ctx, next)
	if err != nil {
		return nil, err
	}
	if err := s.admission.SetRules(ctx, rules, setup.Principal(),
		"changed and in force: "+strings.Join(live, ", ")); err != nil {
		return nil, err
	}
	s.rules.files, s.rules.sources = files, sources
	s.rules.config.Store(next)
	if err := s.Apply(ctx, servers); err != nil {
		return nil, err
	}
	if s.rules.changed != nil {
		s.rules.changed(now, next)
	}
	return live, nil
}

// ownProfileChanges reports whether the one profile that all callers have is not the same any more.
// Servers outside of it are not connected.
func (s *System) ownProfileChanges(now, next *config.Config) bool {
	_, err := next.Profile(s.opts.Profile)
	return err != nil || now.DefaultProfile != next.DefaultProfile &&
		(s.opts.Profile == "" || s.opts.Profile == now.DefaultProfile)
}

// adoptLocked replaces the configuration in force by next if only its text differs, not its
// meaning. Clients compare the text of their file with the one in force. If the operator sealed or
// confirmed the previous text, adoptLocked does nothing.
func (s *System) adoptLocked(ctx context.Context, next *config.Config, files []policies.File) {
	now := s.Config()
	if next.Source() == now.Source() || !config.SameMeaning(now, next) {
		return
	}
	if found, err := integrity.Check(ctx, next, nil, false); err == nil && found.Verified {
		before, after := trust.ContentOf(now, s.rules.files), trust.ContentOf(next, files)
		if s.opts.Serving && s.confirmed(ctx, before, after) != nil {
			return // the next start reports it
		}
		s.rules.files = files
		s.rules.config.Store(next)
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
func (s *System) refusal(err error) upstreams.Notice {
	notice := upstreams.Notice{Text: fmt.Sprintf("a change is refused, and all rules stay as they were: %v", err)}
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		notice.Hint = advised.Hint()
	}
	return notice
}

// tellRefused notifies people that a change is refused and records it in the audit log.
func (s *System) tellRefused(ctx context.Context, err error) {
	notice := s.refusal(err)
	s.rules.refused.Store(&notice)
	s.opts.Notify(notice)
	r := audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: setup.Principal()},
		Effect: audit.Effect{Outcome: audit.OutcomeRefused},
		Detail: "a changed configuration or policy has a mistake; the rules stay as they were",
	}
	if restart, ok := errors.AsType[*restartError](err); ok {
		r.Detail = "a change needs a restart, and the rules stay as they were: " + strings.Join(restart.keys, ", ")
	}
	if unconfirmed, ok := errors.AsType[*unconfirmedError](err); ok {
		r = unconfirmed.record()
	}
	if err := s.log.Append(ctx, r); err != nil {
		s.opts.Logger.ErrorContext(ctx, "a refused change is not recorded", slog.Any(telemetry.KeyError, err))
	}
}
