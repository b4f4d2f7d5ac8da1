package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// bounded limits the concurrent requests, in total and of each account. A request counts for the
// network that it comes from until its caller is authenticated, and then for the account of the
// caller. Further requests are refused immediately.
type bounded struct {
	next      http.Handler
	answering *inFlight // counts requests other than open streams
	requests  *quota.Limiter
	known     *accounts
	// until calls ended when a caller's requests are not accepted any more.
	until func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	// signedIn returns the account of a request with the cookie of an open session of the
	// console, and proved that of one with a valid token.
	signedIn func(r *http.Request) (account string, ok bool)
	proved   func(w http.ResponseWriter, r *http.Request) (account string, ok bool)
}

func newBounded(l quota.Limit, answering *inFlight,
	until func(context.Context, caller.Caller, func(error)) func()) *bounded {
	none := func(*http.Request) (string, bool) { return "", false }
	return &bounded{requests: quota.New(l), known: newAccounts(), until: until, signedIn: none, answering: answering,
		proved: func(http.ResponseWriter, *http.Request) (string, bool) { return "", false }}
}

// requestKey is the context key of a *request. It cannot be a parameter, because it is passed
// through handlers of net/http to the face that identifies the caller.
type requestKey struct{}

// request is one request in progress.
type request struct {
	of         *bounded
	network    string                  // from which the request comes
	credential [sha256.Size]byte       // zero if the request has none
	cancel     context.CancelCauseFunc // ends the request
	ended      func(error)             // ends it when its credential has ended
	stop       func()                  // stops its answer, which the client may read slowly
	unit       *quota.Reservation

	mu       sync.Mutex // guards what follows
	admitted bool       // the caller is authenticated
	unwatch  func()     // see bounded.until
	over     bool       // it is answered
}

// ServeHTTP answers one request, or refuses it. The limits do not apply to health checks.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		b.next.ServeHTTP(w, r)
		return
	}
	p := &request{of: b, network: caller.Network(r.RemoteAddr), credential: credentialOf(r), unwatch: func() {}}
	var err error
	if p.unit, err = b.reserve(w, r, p); err != nil {
		if refused := (*quota.Refusal)(nil); errors.As(err, &refused) {
			problem.Refuse(w, r, refused)
		}
		return
	}
	defer p.end()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	p.cancel = cancel
	p.stop = func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now()) }
	p.ended = p.cancelNow // nothing awaits an answer in an open stream
	if r.Method != http.MethodGet {
		defer b.answering.begin()()
		p.ended = p.cancelAfterAnswer
	}
	b.next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, requestKey{}, p)))
}

// reserve counts a request for the account of its credential or, if that is unknown, for its
// network. A request with a valid credential is not refused because of its network.
func (b *bounded) reserve(w http.ResponseWriter, r *http.Request, p *request) (*quota.Reservation, error) {
	account, known := b.known.of(p.credential)
	if !known {
		account, known = b.signedIn(r)
	}
	if known {
		return b.requests.Take(account, 1)
	}
	unit, err := b.requests.Take("network "+p.network, 1)
	if refused := (*quota.Refusal)(nil); errors.As(err, &refused) && refused.Reason == quota.OfAccount {
		if account, known = b.proved(w, r); known {
			return b.requests.Take(account, 1)
		}
	}
	return unit, err
}

// admit counts the request of ctx for the account of its caller from now on, and cancels it when the
// credential of the caller ends. If the limit of the account is reached, the error is a
// *quota.Refusal. admit does nothing if ctx is not that of an HTTP request.
func (b *bounded) admit(ctx context.Context, who caller.Caller) error {
	p, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return nil
	}
	if err := p.unit.Move(who.Account()); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.admitted {
		p.unwatch = b.until(context.WithoutCancel(ctx), who, p.ended)
	}
	p.admitted = true
	b.known.add(p.credential, who.Account())
	return nil
}

// answerTime is how long a face has to answer a request whose credential has ended. The request itself has ended
// before, see Transport.whileKnown.
const answerTime = time.Second

// cancelAfterAnswer cancels the request, unless it is answered in answerTime.
func (p *request) cancelAfterAnswer(err error) {
	time.AfterFunc(answerTime, func() { p.cancelNow(err) })
}

// stopTime is how long the answer to a cancelled request has to end by itself, so that the client sees its end.
const stopTime = 500 * time.Millisecond

// cancelNow cancels the request, and stops its answer if it does not end: a client can read a download slowly.
func (p *request) cancelNow(err error) {
	p.cancel(err)
	time.AfterFunc(stopTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.over { // else the connection may have another request
			p.stop()
		}
	})
}

// end releases the reservation, also if the handler panics. If the credential was not
// validated in this request, it is removed from the known ones: it may have expired.
func (p *request) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unit.Release()
	p.unwatch()
	p.over = true
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

// accounts caches the account of each credential, so that a request counts for its account before
// the credential is looked up. Thus callers behind one address or proxy do not share a limit. The
// cache is not used for authorization.
type accounts struct {
	by *quota.Table[[sha256.Size]byte, string]
}

func newAccounts() *accounts {
	return &accounts{quota.NewTable[[sha256.Size]byte, string](quota.For(quota.Credentials))}
}

func (a *accounts) of(credential [sha256.Size]byte) (account string, known bool) {
	account, done, known := a.by.Use(credential)
	done()
	return account, known
}

func (a *accounts) add(credential [sha256.Size]byte, account string) {
	if credential == [sha256.Size]byte{} {
		return
	}
	if known, ok := a.by.Get(credential); ok && known == account {
		return
	}
	if done, _, err := a.by.Add(account, credential, account); err == nil { // else all entries are in use for a moment
		done()
	}
}

func (a *accounts) remove(credential [sha256.Size]byte) { a.by.Remove(credential) }
