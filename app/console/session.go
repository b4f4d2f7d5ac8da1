package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Limits of sessions. Requests that a page makes by itself do not extend the idle time.
const (
	idleTime     = 2 * time.Hour // since a person last did something
	sessionTime  = 12 * time.Hour
	maxSessions  = 1000
	maxOwned     = 20 // of one principal; the least recently used one ends
	maxNotices   = 5
	sessionBytes = 32 // of the ID, and of the token of its forms
)

// session is a signed-in browser.
type session struct {
	token   secret.Value   // of the sign-in; unset for a session of a link
	given   *caller.Caller // the owner of the link; nil for a session of a token
	owner   string         // for maxOwned
	account string         // that its requests are counted for
	form    string         // the token of its forms
	began   time.Time

	mu      sync.Mutex // guards the fields below
	used    time.Time
	notices []string // for its next page
}

// callerOf returns the present caller of a session. It checks the token again, which may have
// been revoked or may have other rights since the sign-in.
func (c *Console) callerOf(ctx context.Context, s *session) (caller.Caller, error) {
	if s.given != nil {
		return *s.given, nil
	}
	who, err := c.opts.Identify(ctx, s.token)
	if err == nil && !isPerson(who) {
		err = auth.ErrInvalid
	}
	return who, err
}

// isPerson reports whether a caller may use pages for people: an agent may not.
func isPerson(who caller.Caller) bool { return who.Known() && who.Kind != caller.Agent }

func (s *session) tell(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notices) < maxNotices {
		s.notices = append(s.notices, sentence)
	}
}

// told returns the notices and removes them.
func (s *session) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.notices
	s.notices = nil
	return said
}

func (s *session) touch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = now
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.began) >= sessionTime || now.Sub(s.lastUsed()) >= idleTime
}

// sessions are the sessions of all browsers, by the hashes of their IDs. Its methods are safe for
// concurrent use.
type sessions struct {
	now   func() time.Time
	ended func(*session) // called for each session that is removed

	mu   sync.Mutex // guards the fields below
	byID map[[sha256.Size]byte]*session
}

func newSessions(now func() time.Time, ended func(*session)) *sessions {
	return &sessions{now: now, ended: ended, byID: map[[sha256.Size]byte]*session{}}
}

// errFull refuses a session because there are too many.
var errFull = errors.New("too many people are signed in")

// begin adds a session and returns its ID. The ID itself is not stored.
func (s *sessions) begin(made *session) (id string, err error) {
	id, made.form = newSecret(), newSecret()
	now := s.now()
	made.began, made.used = now, now
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoomLocked(made.owner, now)
	if len(s.byID) >= maxSessions {
		return "", errFull
	}
	s.byID[sha256.Sum256([]byte(id))] = made
	return id, nil
}

// makeRoomLocked removes expired sessions, and the least recently used ones of the owner until it
// has fewer than maxOwned.
func (s *sessions) makeRoomLocked(owner string, now time.Time) {
	type kept struct {
		id   [sha256.Size]byte
		used time.Time
	}
	var owned []kept
	for id, other := range s.byID {
		switch {
		case other.over(now):
			s.removeLocked(id)
		case other.owner == owner:
			owned = append(owned, kept{id, other.lastUsed()})
		}
	}
	slices.SortFunc(owned, func(a, b kept) int { return a.used.Compare(b.used) })
	for len(owned) >= maxOwned {
		s.removeLocked(owned[0].id)
		owned = owned[1:]
	}
}

// find returns the session of an ID, or nil.
func (s *sessions) find(id string) *session {
	sum := sha256.Sum256([]byte(id)) // hashed keys: the duration of the search reveals nothing about an ID
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byID[sum]
	if found != nil && found.over(s.now()) {
		s.removeLocked(sum)
		return nil
	}
	return found
}

// end forgets a session. It may be called twice.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(sha256.Sum256([]byte(id)))
}

func (s *sessions) removeLocked(sum [sha256.Size]byte) {
	if one := s.byID[sum]; one != nil {
		delete(s.byID, sum)
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
		Name: c.cookieName(), Value: id, Path: "/", HttpOnly: true, Secure: c.opts.Secure, SameSite: http.SameSiteStrictMode,
		MaxAge: int(sessionTime / time.Second),
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
// session.
func (c *Console) Account(r *http.Request) (account string, ok bool) {
	id := c.sessionID(r)
	if id == "" {
		return "", false
	}
	s := c.sessions.find(id)
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
		return nil, auth.ErrNone
	}
	if !isLive(r) {
		s.touch(c.opts.Now())
	}
	return s, nil
}

// ownerOf returns the key of the principal that sessions are counted for.
func ownerOf(who caller.Caller) string {
	return string(cmp.Or(who.Kind, caller.Local)) + " " + who.Name()
}
