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

// links are one-time codes that sign in who has one. They are kept as hashes. Its
// methods may be called concurrently.
type links struct {
	now func() time.Time

	mu   sync.Mutex // guards what follows
	open map[[sha256.Size]byte]link
}

// link is one that was not used yet.
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

// use returns whom a code is for, once.
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

// Link makes a one-time address that signs a caller in within two minutes, as a path
// with its query. The caller of Link has proved who that is.
func (c *Console) Link(who caller.Caller) (string, error) {
	code, err := c.links.add(who)
	if err != nil {
		return "", err
	}
	return linkPath + "?code=" + code, nil
}

// showLink asks whether to sign in: a program that looks at addresses, as those that
// show previews do, uses none up.
func (c *Console) showLink(w http.ResponseWriter, r *http.Request) {
	c.render(w, nil, "link", view{title: "Sign in", data: r.URL.Query().Get("code")})
}

// useLink signs in.
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
