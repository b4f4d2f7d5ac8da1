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

// The limits by which requests that are refused are counted.
const (
	limitCaller  = "caller"  // a caller has its share
	limitNetwork = "network" // requests of unknown callers from one network have theirs
	limitAll     = "all"     // as many are answered as can be
)

// fair lets each caller have no more than its share of the requests that are answered at
// one time. A request counts for the network that it comes from until its caller has
// proved who that is, and for the caller then.
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

// placeKey is where the context of a request holds its *place. It is no parameter because
// it is the request's, from the listener to the face that finds out who calls, through
// the handlers of net/http between them.
type placeKey struct{}

// place is what a request holds of a share.
type place struct {
	of         *fair
	network    string            // that the request comes from
	credential [sha256.Size]byte // zero: the request has none

	mu       sync.Mutex // guards what follows
	account  string
	admitted bool // the caller has proved that the account is its own
	release  func()
	cancel   context.CancelCauseFunc // ends the request
	unwatch  func()                  // see fair.until
}

// serve has next answer a request that there is a share for, and refuses others.
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
	if !ok && !known { // callers who can prove who they are do not share a limit with others
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

// admit counts the request of ctx for the account of its caller from now on, and ends the
// request when the caller's credential does. Its error is auth.ErrShare. What is not a
// request over HTTP counts for none.
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

// end releases what the request holds, also where its handler panics. A credential that
// has not been proved again is not known any more: it may have expired.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
	p.unwatch()
	if !p.admitted {
		p.of.known.remove(p.credential)
	}
}

// credentialOf is a digest of the headers that a caller proves with who it is.
func credentialOf(r *http.Request) (sum [sha256.Size]byte) {
	bearer, agent := r.Header.Values("Authorization"), r.Header.Values(auth.AgentHeader)
	if len(bearer)+len(agent) == 0 {
		return sum
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", bearer, agent))
}

// accounts remembers for whom requests with a credential counted last, so that they do
// before it is looked up: callers behind one address, or one proxy, do not take each
// other's share. It decides nothing else.
type accounts struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]string
}

// maxAccounts is how many credentials are remembered; of more, any is forgotten.
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
