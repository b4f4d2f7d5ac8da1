package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Limits of sessions. Requests that a page makes by itself do not extend the idle time.
const (
	sessionTime  = 12 * time.Hour
	maxNotices   = 5
	sessionBytes = 32 // of the ID, and of the token of its forms
)

// session is a signed-in browser.
type session struct {
	name    string         // under which it is shared with other nodes
	token   secret.Value   // of the sign-in; unset for a session of a link
	given   *caller.Caller // the owner of the link; nil for a session of a token
	person  *auth.Person   // signed in at the OpenID provider; nil otherwise
	account string         // that its requests are counted for
	form    string         // the token of its forms
	began   time.Time

	mu      sync.Mutex // guards the fields below
	notices []string   // for its next page
	shared  time.Time  // when it was shared with other nodes
}

// callerOf returns the present caller of a session. It checks the token again, which may have
// been revoked or may have other rights since the sign-in.
func (c *Console) callerOf(ctx context.Context, s *session) (caller.Caller, error) {
	switch {
	case s.given != nil && c.opts.Roles != nil:
		who := *s.given
		who.Roles = c.opts.Roles(who)
		return who, nil
	case s.given != nil:
		return *s.given, nil
	case s.person != nil:
		return c.openID.signIn.Caller(ctx, *s.person)
	}
	who, err := c.opts.Identify(ctx, s.token)
	if err == nil && !isPerson(who) {
		err = auth.ErrInvalid
	}
	return who, err
}

// isPerson reports whether a caller may use pages for people: an agent may not.
func isPerson(who caller.Caller) bool { return who.Known() && who.Kind != caller.Agent }

func (s *session) notify(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notices) < maxNotices {
		s.notices = append(s.notices, sentence)
	}
}

// takeNotices returns the notices and removes them.
func (s *session) takeNotices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.notices
	s.notices = nil
	return said
}

// sessions are the sessions of all browsers, by the hashes of their IDs. Only what a person does is
// a use of a session. Its methods are safe for concurrent use.
type sessions struct {
	now   func() time.Time
	mark  func(id string) string // names this process in an ID
	ended func(*session)         // called for each session that is removed
	byID  *quota.Table[[sha256.Size]byte, *session]
}

func newSessions(now func() time.Time, mark func(string) string, ended func(*session)) *sessions {
	return &sessions{now, mark, ended, quota.NewTable[[sha256.Size]byte, *session](quota.For(quota.Browsers)).At(now)}
}

// errFull refuses a session because there are too many.
var errFull = errors.New("too many people are signed in")

// begin adds a session and returns its ID. The ID itself is not stored.
func (s *sessions) begin(made *session) (id string, err error) {
	id, made.form, made.began = s.mark(newSecret()), newSecret(), s.now()
	made.name = nameOf(id)
	done, removed, err := s.byID.Add(made.account, sha256.Sum256([]byte(id)), made)
	done()
	for _, other := range removed {
		s.ended(other.Value)
	}
	if err != nil {
		return "", errFull
	}
	return id, nil
}

// find returns the session of an ID, or nil.
func (s *sessions) find(id string) *session {
	sum := sha256.Sum256([]byte(id)) // hashed keys: the duration of the search reveals nothing about an ID
	found, known := s.byID.Get(sum)
	if known && s.now().Sub(found.began) < sessionTime {
		return found
	}
	s.end(id)
	return nil
}

// use records that the person of a session did something.
func (s *sessions) use(id string) {
	_, done, _ := s.byID.Use(sha256.Sum256([]byte(id)))
	done()
}

// end forgets a session. It may be called twice.
func (s *sessions) end(id string) {
	if one, known := s.byID.Remove(sha256.Sum256([]byte(id))); known {
		s.ended(one)
	}
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	raw := make([]byte, sessionBytes)
	rand.Read(raw) // never fails: crypto/rand aborts the program instead
	return base64.RawURLEncoding.EncodeToString(raw)
}

// The names of the cookie. A browser accepts a cookie with the prefix __Host- only from this host,
// over TLS and for the path / (RFC 6265bis, section 4.1.3.2).
const (
	cookieName       = "airlock-console"
	secureCookieName = "__Host-airlock-console"
)

func (c *Console) cookieName() string {
	if c.opts.Secure {
		return secureCookieName
	}
	return cookieName
}

// cookie returns the cookie of a session. An empty ID removes the cookie.
func (c *Console) cookie(id string) *http.Cookie {
	cookie := &http.Cookie{
		Name: c.cookieName(), Value: id, Path: "/", HttpOnly: true, Secure: c.opts.Secure,
		SameSite: http.SameSiteStrictMode,
		MaxAge:   int(sessionTime / time.Second),
	}
	if id == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// sessionID returns the session ID in the cookie of a request. It is empty if the request has
// no such cookie or several.
func (c *Console) sessionID(r *http.Request) string {
	if all := r.CookiesNamed(c.cookieName()); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// Account returns the account that a request is counted for, if it has the cookie of an open
// session or the code of a link that can be used.
func (c *Console) Account(r *http.Request) (account string, ok bool) {
	if r.URL.Path == linkPath {
		return c.links.account(r.URL.Query().Get("code"))
	}
	id := c.sessionID(r)
	if id == "" {
		return "", false
	}
	s := c.sessions.find(id)
	if s == nil {
		s = c.guest(r.Context(), id)
	}
	if s == nil {
		return "", false
	}
	return s.account, true
}

// isLive reports whether a page sent the request by itself, without a person's action.
func isLive(r *http.Request) bool { return r.Header.Get("HX-Request") != "" }

// signedIn returns the session of a request, or auth.ErrNone.
func (c *Console) signedIn(r *http.Request) (*session, error) {
	id := c.sessionID(r)
	if id == "" {
		return nil, auth.ErrNone
	}
	s := c.sessions.find(id)
	if s == nil {
		if s = c.guest(r.Context(), id); s == nil {
			return nil, auth.ErrNone
		}
		return s, nil
	}
	if !isLive(r) {
		c.sessions.use(id)
		c.share(r.Context(), s)
	}
	return s, nil
}
