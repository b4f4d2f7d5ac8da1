package console

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Limits of a link.
const (
	linkTime = 2 * time.Minute
	maxLinks = 100 // that are open
)

// links are one-time codes for signing in. They are stored as hashes. Its methods are safe for
// concurrent use.
type links struct {
	now func() time.Time

	mu   sync.Mutex // guards the fields below
	open map[[sha256.Size]byte]link
}

// link is an unused code.
type link struct {
	who   caller.Caller
	until time.Time
}

func newLinks(now func() time.Time) *links {
	return &links{now: now, open: map[[sha256.Size]byte]link{}}
}

var errManyLinks = errors.New("too many links were asked for: wait two minutes")

// add makes a code for a caller.
func (l *links) add(who caller.Caller) (code string, err error) {
	code = newSecret()
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for sum, other := range l.open {
		if !now.Before(other.until) {
			delete(l.open, sum)
		}
	}
	if len(l.open) >= maxLinks {
		return "", errManyLinks
	}
	l.open[sha256.Sum256([]byte(code))] = link{who, now.Add(linkTime)}
	return code, nil
}

// use returns the caller of a code and removes the code.
func (l *links) use(code string) (caller.Caller, bool) {
	sum := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.open[sum]
	delete(l.open, sum)
	if !ok || !l.now().Before(found.until) {
		return caller.Caller{}, false
	}
	return found.who, true
}

// linkPath is the path at which a code is redeemed.
const linkPath = "/link"

// Link returns a one-time URL, as path and query, that signs a caller in. It expires after two
// minutes. who must be authenticated.
func (c *Console) Link(who caller.Caller) (string, error) {
	code, err := c.links.add(who)
	if err != nil {
		return "", err
	}
	return linkPath + "?code=" + code, nil
}

// showLink shows a button for signing in. It does not use the code, because programs that show
// previews of links send GET requests.
func (c *Console) showLink(w http.ResponseWriter, r *http.Request) {
	c.render(w, nil, "link", view{title: "Sign in", data: r.URL.Query().Get("code")})
}

// useLink signs in with the code of a link.
func (c *Console) useLink(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.render(w, nil, "refused", refusedView(errForm))
		return
	}
	who, ok := c.links.use(r.PostForm.Get("code"))
	if !ok {
		c.failures.add(r.RemoteAddr)
		c.showSignIn(w, http.StatusForbidden, signIn{Problem: "The link was used already, or is older than two minutes.", Hint: "airlock console prints another one"})
		return
	}
	c.begin(w, r, &session{given: &who, owner: ownerOf(who), account: who.Share()}, "/")
}
