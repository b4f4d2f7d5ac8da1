package auth

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// The prefixes of credential IDs.
const (
	tokenID = "tok_"
	agentID = "agent_"
	jwtID   = "jwt_"
)

// watchInterval is how often the credentials of acts under way are checked. Another
// process may have revoked them.
const watchInterval = 250 * time.Millisecond

// Registry finds registered agents.
type Registry interface {
	Find(ctx context.Context, id string) (agents.Agent, error)
}

// AuthorityOptions of an authority. Tokens and Agents are required.
type AuthorityOptions struct {
	Tokens *Tokens
	Agents Registry
	// Profiles reports whether the configuration has a profile; nil means that it has all.
	Profiles func(name string) bool
	Logger   *slog.Logger // nil discards
}

// Authority reports whether the credentials of callers are in force, and ends the acts of callers
// whose credentials are not. No other code decides this. Its methods are safe for concurrent use.
type Authority struct {
	opts    AuthorityOptions
	running sync.WaitGroup

	mu      sync.Mutex
	issuer  *Issuer                           // nil: no JWT is in force
	renewed map[string]time.Time              // by the IDs of JWTs: when the last token expires
	watched map[string]map[*follower]struct{} // by keyOf
	look    chan struct{}                     // asks for a check now; nil if nothing is watched
	closed  bool
}

// follower is one act under way.
type follower struct {
	who   caller.Caller
	ended func(error)
	told  bool // requests of a suspended agent are not ended
}

// NewAuthority returns an authority. The caller closes it.
func NewAuthority(opts AuthorityOptions) *Authority {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Authority{opts: opts, renewed: map[string]time.Time{}, watched: map[string]map[*follower]struct{}{}}
}

// Accept accepts JWTs of an issuer while the issuer has the keys that signed them.
func (a *Authority) Accept(issuer *Issuer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issuer = issuer
}

// Check returns nil if the caller may act now. It returns caller.ErrEnded or caller.ErrInactive if
// the caller may no longer act. Any other error means that this could not be determined, and the
// caller must not act either.
func (a *Authority) Check(ctx context.Context, who caller.Caller) error {
	if who.Kind != caller.Local && len(who.Credentials) == 0 {
		return fmt.Errorf("%w: a caller over the network has no credential", caller.ErrEnded)
	}
	if !a.hasProfile(who.Profile) {
		return fmt.Errorf("%w: there is no profile %q", caller.ErrEnded, who.Profile)
	}
	return a.checkAll(ctx, who.Credentials)
}

// checkProof is Check for a caller whose credential may just have been read.
func (a *Authority) checkProof(ctx context.Context, found proof) error {
	if !found.isCurrent || slices.ContainsFunc(found.who.Credentials, a.isOver) || !a.hasProfile(found.who.Profile) {
		return a.Check(ctx, found.who)
	}
	return a.checkAll(ctx, found.made)
}

func (a *Authority) hasProfile(name string) bool {
	return name == "" || a.opts.Profiles == nil || a.opts.Profiles(name)
}

// maxRenewed is the number of remembered JWTs above which expired ones are removed.
const maxRenewed = 1000

// renew extends the acts that were started with a JWT if the same client sends a newer one with the
// same subject and rights.
func (a *Authority) renew(c caller.Credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.Expires.After(a.renewed[c.ID]) {
		return
	}
	if len(a.renewed) >= maxRenewed {
		now := a.opts.Tokens.now()
		maps.DeleteFunc(a.renewed, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	}
	a.renewed[c.ID] = c.Expires
}

// expires returns when a credential expires, or the zero time if it does not expire.
func (a *Authority) expires(c caller.Credential) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if later := a.renewed[c.ID]; !c.Expires.IsZero() && later.After(c.Expires) {
		return later
	}
	return c.Expires
}

// isOver reports whether a credential has expired.
func (a *Authority) isOver(c caller.Credential) bool {
	end := a.expires(c)
	return !end.IsZero() && !a.opts.Tokens.now().Before(end)
}

func (a *Authority) check(ctx context.Context, c caller.Credential) error {
	switch {
	case a.isOver(c):
		return fmt.Errorf("%w: %s", caller.ErrEnded, Expired)
	case !a.hasProfile(c.Profile):
		return fmt.Errorf("%w: there is no profile %q", caller.ErrEnded, c.Profile)
	case strings.HasPrefix(c.ID, tokenID):
		creators, err := a.opts.Tokens.check(ctx, c)
		if err != nil {
			return err
		}
		return a.checkAll(ctx, creators) // a token is older than those made with it, so this ends
	case strings.HasPrefix(c.ID, agentID):
		return a.checkAgent(ctx, c)
	case strings.HasPrefix(c.ID, jwtID):
		return a.checkIssued(ctx, c)
	}
	return fmt.Errorf("%w: there is no credential %q", caller.ErrEnded, c.ID)
}

// checkIssued checks a credential for which the issuer vouches.
func (a *Authority) checkIssued(ctx context.Context, c caller.Credential) error {
	a.mu.Lock()
	issuer := a.issuer
	a.mu.Unlock()
	m, ok := parseMark(c.Mark)
	if !ok || issuer == nil || !issuer.accepts(ctx, m) {
		return fmt.Errorf("%w: the issuer does not have the key any more, or gives less", caller.ErrEnded)
	}
	return a.opts.Tokens.checkSignedIn(ctx, m)
}

// checkAgent checks an agent together with the credentials that it was registered with.
func (a *Authority) checkAgent(ctx context.Context, c caller.Credential) error {
	agent, err := a.opts.Agents.Find(ctx, c.ID)
	switch {
	case errors.Is(err, agents.ErrUnknown):
		return fmt.Errorf("%w: there is no such agent", caller.ErrInactive)
	case err != nil:
		return err
	case agent.Status != agents.Active:
		return fmt.Errorf("%w: it is %s", caller.ErrInactive, agent.Status)
	case c.Mark != "" && c.Mark != agent.TokenMark:
		return fmt.Errorf("%w: the agent has another token", caller.ErrEnded)
	}
	return a.checkAll(ctx, agent.Inherited.Credentials)
}

// IsOwn reports whether a caller has asked with one of the credentials with these IDs: with its own, with one that its
// own was made with, or as an agent that it has registered.
func (a *Authority) IsOwn(ctx context.Context, who caller.Caller, asked []string) (bool, error) {
	held := map[string]bool{}
	if err := a.hold(ctx, who.Credentials, held); err != nil {
		return false, err
	}
	for _, id := range asked {
		if held[holderOf(id)] {
			return true, nil
		}
		if !strings.HasPrefix(id, agentID) {
			continue
		}
		agent, err := a.opts.Agents.Find(ctx, id)
		if err != nil && !errors.Is(err, agents.ErrUnknown) {
			return false, err
		}
		if slices.ContainsFunc(agent.Inherited.Credentials, func(c caller.Credential) bool {
			return held[holderOf(c.ID)]
		}) {
			return true, nil
		}
	}
	return false, nil
}

// hold adds the holders of credentials, and of those that they were made with.
func (a *Authority) hold(ctx context.Context, credentials []caller.Credential, held map[string]bool) error {
	for _, c := range credentials {
		held[holderOf(c.ID)] = true
		if !strings.HasPrefix(c.ID, tokenID) {
			continue
		}
		creators, err := a.opts.Tokens.check(ctx, c)
		if err == nil {
			err = a.hold(ctx, creators, held)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holderOf returns what the IDs of all credentials have in common that one holder can get for one subject: an
// authorization server gives a client tokens with different scopes.
func holderOf(id string) string {
	if rest, ok := strings.CutPrefix(id, jwtID); ok {
		return jwtID + rest[:min(len(rest), holderDigits)]
	}
	return id
}

// checkAll checks the credentials with which an agent was registered or a token was made.
func (a *Authority) checkAll(ctx context.Context, creators []caller.Credential) error {
	for _, one := range creators {
		if err := a.check(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// Narrower returns the profile of a caller from the profile of its credential and the one that it
// asks for. Two different profiles cannot be combined, so they are an error.
func Narrower(has, asked string) (string, error) {
	if has != "" && asked != "" && has != asked {
		return "", fmt.Errorf("the credential has the profile %q, and cannot be used with the profile %q", has, asked)
	}
	return cmp.Or(has, asked), nil
}

// check returns an error if a token does not give the same rights any more, and otherwise the credentials with which
// it was made.
func (t *Tokens) check(ctx context.Context, c caller.Credential) (creators []caller.Credential, err error) {
	if !t.db.IsShared() {
		return t.look(ctx, c)
	}
	return lastKnown(t, keyOf(caller.Caller{Credentials: []caller.Credential{c}}),
		func() ([]caller.Credential, error) { return t.look(ctx, c) })
}

func (t *Tokens) look(ctx context.Context, c caller.Credential) (creators []caller.Credential, err error) {
	err = t.db.Query(ctx, func(tx database.Tx) error {
		var profile, scopes, made string
		var expires, revoked int64
		err := tx.QueryRowContext(ctx, `SELECT profile, scopes, expires, revoked, creators FROM token WHERE id = ?`,
			c.ID).Scan(&profile, &scopes, &expires, &revoked, &made)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("%w: %s", caller.ErrEnded, Unknown)
		case err != nil:
			return fmt.Errorf("looking up token %q: %w", c.ID, err)
		case revoked != 0:
			return fmt.Errorf("%w: %s", caller.ErrEnded, Revoked)
		case expires != 0 && t.now().Unix() >= expires:
			return fmt.Errorf("%w: %s", caller.ErrEnded, Expired)
		case profile != c.Profile:
			return fmt.Errorf("%w: its profile is %q", caller.ErrEnded, profile)
		}
		has := strings.Fields(scopes)
		for _, scope := range c.Scopes {
			if !slices.Contains(has, scope) {
				return fmt.Errorf("%w: it lacks the scope %q", caller.ErrEnded, scope)
			}
		}
		if err := strictjson.UnmarshalOpen([]byte(made), &creators); err != nil {
			return fmt.Errorf("reading how token %q was made: %w", c.ID, err)
		}
		return nil
	})
	return creators, err
}

// While returns a context that ends, with the error of Check as its cause, when the caller
// may no longer act. The caller of While must call stop when the act is done.
func (a *Authority) While(ctx context.Context, who caller.Caller) (_ context.Context, stop func()) {
	if len(who.Credentials) == 0 && who.Profile == "" {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	leave := a.watch(ctx, &follower{who: who, ended: cancel})
	return ctx, func() { leave(); cancel(context.Canceled) }
}

// WhileKnown calls ended, once, when requests of the caller are not accepted any more. Requests of
// a suspended agent are accepted and refused by name. ended must not block. stop may be called
// twice.
func (a *Authority) WhileKnown(ctx context.Context, who caller.Caller, ended func(error)) (stop func()) {
	if len(who.Credentials) == 0 && who.Profile == "" {
		return func() {}
	}
	return a.watch(ctx, &follower{who: who, ended: ended, told: true})
}

// keyOf returns a key that is equal for callers for whom Check returns the same.
func keyOf(who caller.Caller) string { return fmt.Sprintf("%q %+q", who.Profile, who.Credentials) }

func (a *Authority) watch(ctx context.Context, f *follower) (stop func()) {
	key := keyOf(f.who)
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.watched[key]
	if known == nil {
		known = map[*follower]struct{}{}
		a.watched[key] = known
	}
	known[f] = struct{}{}
	if a.look == nil && !a.closed {
		a.look = make(chan struct{}, 1)
		look := a.look
		a.running.Go(func() { a.run(context.WithoutCancel(ctx), look) })
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.leaveLocked(key, f)
	})
}

func (a *Authority) leaveLocked(key string, f *follower) {
	if delete(a.watched[key], f); len(a.watched[key]) == 0 {
		delete(a.watched, key)
	}
}

// Changed starts a check of the credentials of all current acts. It is called after this process
// has changed a credential.
func (a *Authority) Changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lookLocked()
}

func (a *Authority) lookLocked() {
	select {
	case a.look <- struct{}{}:
	default: // nothing is watched, or a check is due
	}
}

// Close stops watching. It may be called twice.
func (a *Authority) Close() {
	a.mu.Lock()
	a.closed = true
	a.lookLocked()
	a.mu.Unlock()
	a.running.Wait()
}

// run checks the watched acts until there are no more.
func (a *Authority) run(ctx context.Context, look <-chan struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-look:
		case <-tick.C:
		}
		asked := a.asked()
		if asked == nil {
			return
		}
		for key, who := range asked {
			err := a.Check(ctx, who)
			switch {
			case errors.Is(err, caller.ErrEnded), errors.Is(err, caller.ErrInactive):
				a.end(key, err)
			case err != nil: // calls are refused until a check succeeds
				a.opts.Logger.WarnContext(ctx, "whether a credential is still in force could not be looked up",
					slog.Any(telemetry.KeyError, err))
			}
		}
	}
}

// asked returns one caller for each key, or nil if run must end.
func (a *Authority) asked() map[string]caller.Caller {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.watched) == 0 {
		a.look = nil
		return nil
	}
	asked := map[string]caller.Caller{}
	for key, followers := range a.watched {
		for f := range followers {
			asked[key] = f.who
			break
		}
	}
	return asked
}

func (a *Authority) end(key string, err error) {
	var ended []*follower
	a.mu.Lock()
	for f := range a.watched[key] {
		if !f.told || errors.Is(err, caller.ErrEnded) {
			ended = append(ended, f)
			a.leaveLocked(key, f)
		}
	}
	a.mu.Unlock()
	for _, f := range ended {
		f.ended(err)
	}
}
