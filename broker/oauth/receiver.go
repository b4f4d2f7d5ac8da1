package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// The paths of a Receiver. The start page is at ReceiverPath + ID, and its link at BeginPath + ID. Redirect URIs begin
// with ReceiverPath + "callback".
const (
	ReceiverPath = "/sign-ins/"
	BeginPath    = ReceiverPath + "go/"
)

// Receiver receives the answers of browsers that run on other machines, at the public address of a daemon. A sign-in
// belongs to one principal. Its start page must be shown to that principal only, see Begin: otherwise a person could be
// made to sign in for somebody else. Its methods are safe for concurrent use.
type Receiver struct {
	base string                 // https://host
	mark func(id string) string // names this process in an ID

	mu      sync.Mutex
	waiting map[string]*awaited // by the ID of the start page
}

// awaited is a sign-in that waits for its answer.
type awaited struct {
	id, principal string
	redirect      string
	cookie        string // value
	secure        bool
	invitation    Invitation
	address       string // of the authorization server

	request authorization
	answers chan<- outcome

	mu    sync.Mutex
	begun bool
	used  bool
}

// NewReceiver returns the receiver at a public address. mark names this process in the IDs of start pages and in
// states, so that requests can be forwarded to it.
func NewReceiver(base string, mark func(id string) string) *Receiver {
	return &Receiver{base: strings.TrimSuffix(base, "/"), mark: mark, waiting: map[string]*awaited{}}
}

// Remote is a Person whose browser may be on another machine.
type Remote interface {
	Person
	// Receiver returns the receiver of the answer. nil means that the browser is on this machine.
	Receiver() *Receiver
}

// receiverOf returns the receiver of a person, or nil.
func receiverOf(person Person) *Receiver {
	if remote, ok := person.(Remote); ok {
		return remote.Receiver()
	}
	return nil
}

// publicBack is the way back of one sign-in at a Receiver.
type publicBack struct {
	receiver *Receiver
	awaited  *awaited
}

var _ wayBack = (*publicBack)(nil)

// back returns the way back of a sign-in of a principal. path is that of callbackFor.
func (r *Receiver) back(principal, path string) *publicBack {
	return &publicBack{r, &awaited{id: r.mark(randomText()), principal: principal, cookie: randomText(),
		redirect: r.base + strings.TrimSuffix(ReceiverPath, "/") + path, secure: strings.HasPrefix(r.base, "https:")}}
}

func (b *publicBack) uri() string { return b.awaited.redirect }

func (b *publicBack) close() {}

// invite completes an invitation: the address of the authorization server is known to the start page only.
func (b *publicBack) invite(i Invitation) Invitation {
	b.awaited.address = i.Address
	i.Start = b.receiver.base + ReceiverPath + b.awaited.id
	i.Address, i.Public = b.receiver.base+BeginPath+b.awaited.id, true
	b.awaited.invitation = i
	return i
}

// prepare marks the state of a request, so that the answer comes to this process.
func (b *publicBack) prepare(a *authorization) { a.State = b.receiver.mark(a.State) }

// serve receives the answer until ctx ends.
func (b *publicBack) serve(ctx context.Context, a authorization, answers chan<- outcome) error {
	b.awaited.request, b.awaited.answers = a, answers
	r := b.receiver
	r.mu.Lock()
	r.waiting[b.awaited.id] = b.awaited
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	delete(r.waiting, b.awaited.id)
	r.mu.Unlock()
	return nil
}

// find returns a sign-in of a principal that is under way, or nil.
func (r *Receiver) find(id, principal string) *awaited {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.waiting[id]; a != nil && a.principal == principal {
		return a
	}
	return nil
}

// Invitation returns what a start page shows to its principal. It returns false if the principal has no such sign-in.
func (r *Receiver) Invitation(id, principal string) (Invitation, bool) {
	if a := r.find(id, principal); a != nil {
		return a.invitation, true
	}
	return Invitation{}, false
}

// Begin redirects the browser of a principal to the authorization server. The first browser that begins, and no other,
// can answer. It reports whether the principal has this sign-in; if not, it writes nothing. The caller must have
// authenticated the principal.
func (r *Receiver) Begin(w http.ResponseWriter, request *http.Request, id, principal string) bool {
	a := r.find(id, principal)
	if a == nil {
		return false
	}
	a.mu.Lock()
	again := a.begun
	a.begun = true
	a.mu.Unlock()
	if again && !a.isBound(request) {
		page(w, http.StatusGone, pageStarted)
		return true
	}
	// Strict cookies are not sent when the authorization server redirects to the callback.
	http.SetCookie(w, &http.Cookie{Name: a.cookieName(), Value: a.cookie, Path: ReceiverPath, HttpOnly: true,
		Secure: a.secure, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", a.address)
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// cookieName returns the name of the cookie. A browser can make several sign-ins at the same time.
func (a *awaited) cookieName() string {
	sum := sha256.Sum256([]byte(a.id))
	return cookieName + "-" + hex.EncodeToString(sum[:8])
}

// isBound reports whether a request is of the browser that began.
func (a *awaited) isBound(r *http.Request) bool {
	cookies := r.CookiesNamed(a.cookieName())
	return len(cookies) == 1 && subtle.ConstantTimeCompare([]byte(cookies[0].Value), []byte(a.cookie)) == 1
}

// Answer is the handler of redirect URIs. The request needs no session: the cookie of Begin identifies the browser.
func (r *Receiver) Answer(w http.ResponseWriter, request *http.Request) {
	a := r.ofState(request.URL)
	if a == nil || !a.isBound(request) {
		page(w, http.StatusBadRequest, pageForeign)
		return
	}
	code, err := a.request.code(request.URL.Query())
	if errors.Is(err, errForeign) {
		page(w, http.StatusBadRequest, pageForeign)
		return
	}
	a.mu.Lock()
	again := a.used
	a.used = true
	a.mu.Unlock()
	if again {
		page(w, http.StatusGone, pageUsed)
		return
	}
	a.answers <- outcome{code, err}
	page(w, http.StatusOK, pageDone)
}

// ofState returns the sign-in that an answer is for, or nil. The path must be that of its redirect URI, which differs
// from one issuer to the other.
func (r *Receiver) ofState(at *url.URL) *awaited {
	state := at.Query().Get("state")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.waiting {
		if subtle.ConstantTimeCompare([]byte(state), []byte(a.request.State)) == 1 && r.base+at.Path == a.redirect {
			return a
		}
	}
	return nil
}
