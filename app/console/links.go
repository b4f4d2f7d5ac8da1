package console

import (
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// linkTime is how long a link can be used.
const linkTime = 2 * time.Minute

// links are one-time codes for signing in. They are stored as hashes. Its methods are safe for
// concurrent use.
type links struct {
	now  func() time.Time
	mark func(id string) string // names this process in an ID
	open *quota.Table[[sha256.Size]byte, link]
}

// link is an unused code.
type link struct {
	who   caller.Caller
	until time.Time
}

func newLinks(now func() time.Time, mark func(string) string) *links {
	return &links{now, mark, quota.NewTable[[sha256.Size]byte, link](quota.For(quota.Links)).At(now)}
}

// add makes a code for a caller. Beyond the limit of links, it ends the oldest one.
func (l *links) add(who caller.Caller) (code string, err error) {
	code = l.mark(newSecret())
	done, _, err := l.open.Add(who.Account(), sha256.Sum256([]byte(code)), link{who, l.now().Add(linkTime)})
	done()
	return code, err
}

// use returns the caller of a code and removes the code.
func (l *links) use(code string) (caller.Caller, bool) {
	found, ok := l.open.Remove(sha256.Sum256([]byte(code)))
	if !ok || !l.now().Before(found.until) {
		return caller.Caller{}, false
	}
	return found.who, true
}

// account returns the account of the caller of a code, and does not remove the code.
func (l *links) account(code string) (string, bool) {
	found, ok := l.open.Get(sha256.Sum256([]byte(code)))
	return found.who.Account(), ok && l.now().Before(found.until)
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
// Its code is also in the URL, so that the request counts for the account of the code (see Account).
func (c *Console) useLink(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.render(w, nil, "refused", refusedView(errForm))
		return
	}
	who, ok := c.links.use(r.PostForm.Get("code"))
	if !ok {
		c.failures.add(r.RemoteAddr)
		c.showSignIn(w, http.StatusForbidden,
			signIn{Problem: "The link was used already, or is older than two minutes.",
				Hint: "airlock console prints another one"})
		return
	}
	c.begin(w, r, &session{given: &who, account: who.Account()}, "/")
}
