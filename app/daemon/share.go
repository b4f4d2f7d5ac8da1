package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/share"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// The values of the limit by which refused requests are counted.
const (
	limitCaller  = "caller"  // of one caller
	limitNetwork = "network" // of the unknown callers from one network
	limitAll     = "all"     // of all requests together
)

// fair limits the concurrent requests of each caller. A request counts for the network that it
// comes from until its caller is authenticated, and then for the caller.
type fair struct {
	shares *share.Shares
	known  *accounts
	// until calls ended when a caller's requests are not accepted any more.
	until func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	// signedIn returns the account of a request with the cookie of an open session of the
	// console, and proved that of one with a valid token.
	signedIn, proved func(r *http.Request) (account string, ok bool)
}

func newFair(each int64, until func(context.Context, caller.Caller, func(error)) func()) *fair {
	none := func(*http.Request) (string, bool) { return "", false }
	return &fair{share.New(each), newAccounts(), until, none, none}
}

// placeKey is the context key of a request's *place. The place cannot be a parameter, because
// it is passed through handlers of net/http to the face that identifies the caller.
type placeKey struct{}

// place is the reservation of one request in the limit of its account.
type place struct {
	of         *fair
	network    string            // from which the request comes
	credential [sha256.Size]byte // zero if the request has none

	mu       sync.Mutex // guards what follows
	account  string
	admitted bool // the caller is authenticated and account is its account
	release  func()
	cancel   context.CancelCauseFunc // ends the request
	unwatch  func()                  // see fair.until
}

// serve calls next for a request within the limit of its account, and refuses others.
func (f *fair) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p := &place{of: f, network: caller.Network(r.RemoteAddr), credential: credentialOf(r)}
	account, known := f.known.of(p.credential)
	if !known {
		account, known = f.signedIn(r)
	}
	if !known {
		account = "network " + p.network
	}
	release, ok := f.shares.Take(account, 1)
	if !ok && !known { // callers with a valid token do not share the limit of their network
		if account, known = f.proved(r); known {
			release, ok = f.shares.Take(account, 1)
		}
	}
	if !ok {
		w.Header().Set("Retry-After", "1")
		message, limit := auth.ErrShare.Error(), limitCaller
		if !known {
			message, limit = "too many requests from your network are under way before their callers are known: send it again", limitNetwork
		}
		telemetry.CountRefusedRequest(r.Context(), limit)
		problem.Write(w, http.StatusTooManyRequests, "rate_limited", message)
		return
	}
	p.account, p.release = account, release
	p.unwatch = func() {}
	defer p.end()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	p.cancel = cancel
	next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, placeKey{}, p)))
}

// admit counts the request of ctx for the account of its caller from now on, and cancels it
// when the credential of the caller ends. If the limit of the account is reached, it returns
// auth.ErrShare. It does nothing if ctx is not that of an HTTP request.
func (f *fair) admit(ctx context.Context, who caller.Caller) error {
	account := who.Account
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if account != p.account {
		release, ok := f.shares.Take(account, 1)
		if !ok {
			telemetry.CountRefusedRequest(ctx, limitCaller)
			return auth.ErrShare
		}
		p.release()
		p.account, p.release = account, release
	}
	if !p.admitted {
		p.unwatch = f.until(context.WithoutCancel(ctx), who, p.cancel)
	}
	p.admitted = true
	f.known.add(p.credential, account)
	return nil
}

// end releases the reservation, also if the handler panics. If the credential was not
// validated in this request, it is removed from the known ones: it may have expired.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
	p.unwatch()
	if !p.admitted {
		p.of.known.remove(p.credential)
	}
}

// credentialOf returns a digest of the headers with the credentials of a request.
func credentialOf(r *http.Request) (sum [sha256.Size]byte) {
	bearer, agent := r.Header.Values("Authorization"), r.Header.Values(auth.AgentHeader)
	if len(bearer)+len(agent) == 0 {
		return sum
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", bearer, agent))
}

// accounts caches the account of each credential, so that a request counts for its account
// before the credential is looked up. Thus callers behind one address or proxy do not share a
// limit. The cache is not used for authorization.
type accounts struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]string
}

// maxAccounts is the maximum number of cached credentials. Beyond it, any one is evicted.
const maxAccounts = 10_000

func newAccounts() *accounts { return &accounts{by: map[[sha256.Size]byte]string{}} }

func (a *accounts) of(credential [sha256.Size]byte) (account string, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account, known = a.by[credential]
	return account, known
}

func (a *accounts) add(credential [sha256.Size]byte, account string) {
	if credential == [sha256.Size]byte{} {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.by[credential]; !known && len(a.by) >= maxAccounts {
		for other := range a.by {
			delete(a.by, other)
			break
		}
	}
	a.by[credential] = account
}

func (a *accounts) remove(credential [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, credential)
}
