package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// signInPath is the path of the sign-in page.
const signInPath = "/sign-in"

// signIn is the data of the sign-in page.
type signIn struct {
	Next          string // the path after the sign-in
	Problem, Hint string // why the sign-in failed
	Provider      string // the host of the OpenID provider; empty if people cannot sign in there
}

var errForm = &refusal{http.StatusBadRequest, "The form could not be read.", ""}

// signInRoutes registers the routes that need no session.
func (c *Console) signInRoutes() {
	c.mux.HandleFunc("GET "+signInPath, func(w http.ResponseWriter, r *http.Request) {
		c.showSignIn(w, 0, signIn{Next: localPath(r.URL.Query().Get("next"))})
	})
	c.mux.HandleFunc("POST "+signInPath, c.signIn)
	c.openIDRoutes()
	c.mux.HandleFunc("POST /sign-out", c.signOut)
	c.mux.HandleFunc("GET "+askPath, c.showAsk)
	c.mux.HandleFunc("POST "+askPath, c.useAsk)
	c.mux.HandleFunc("GET "+linkPath, c.showLink)
	c.mux.HandleFunc("POST "+linkPath, c.useLink)
	c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		q, err := c.query(r)
		if err != nil {
			c.toSignIn(w, r, err)
			return
		}
		for _, s := range c.sections { // the first that the caller may see
			if s.name != "" && q.may(s.scope) {
				c.answer(w, q, s.template, view{redirect: s.path})
				return
			}
		}
	})
}

func (c *Console) showSignIn(w http.ResponseWriter, status int, s signIn) {
	if c.openID != nil {
		if issuer, _, err := c.openID.signIn.SignIn(context.Background()); err == nil {
			u, _ := url.Parse(issuer) // the configuration was checked
			s.Provider = u.Host
		}
	}
	c.render(w, nil, "signin", view{title: "Sign in", status: status, data: s})
}

// toSignIn redirects a request without a valid session to the sign-in page. The error is the one
// of query.
func (c *Console) toSignIn(w http.ResponseWriter, r *http.Request, err error) {
	var limited *quota.Refusal
	switch {
	case errors.Is(err, auth.ErrInvalid), errors.Is(err, auth.ErrNoRights), errors.Is(err, auth.ErrProfiles):
		c.sessions.end(c.sessionID(r))
	case errors.As(err, &limited):
		limited.Count(r.Context())
		w.Header().Set("Retry-After", "1")
		c.render(w, nil, "refused",
			refusedView(&refusal{http.StatusTooManyRequests, "You have reached the limit of requests at the same time.",
				"Wait for one of them, then try again."}))
		return
	case !errors.Is(err, auth.ErrNone) && !errors.Is(err, auth.ErrSignIn):
		if r.Context().Err() == nil { // otherwise the browser has disconnected
			c.opts.Logger.ErrorContext(r.Context(), "who uses the console could not be looked up",
				slog.Any(telemetry.KeyError, err))
		}
		w.Header().Set("Retry-After", "1")
		c.render(w, nil, "refused",
			refusedView(&refusal{http.StatusServiceUnavailable, "Your sign-in could not be checked.",
				"Try again in a moment."}))
		return
	}
	next := "/"
	if r.Method == http.MethodGet && !isLive(r) {
		next = r.URL.RequestURI()
	}
	target := signInPath
	if next = localPath(next); next != "/" {
		target += "?next=" + url.QueryEscape(next)
	}
	if isLive(r) {
		w.Header().Set("HX-Redirect", signInPath) // htmx leaves the page for it
		http.Error(w, "the session is over", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusSeeOther)
}

// signIn opens a session for the owner of a token.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.render(w, nil, "refused", refusedView(errForm))
		return
	}
	shown := signIn{Next: localPath(r.PostForm.Get("next"))}
	token := secret.New(strings.TrimSpace(r.PostForm.Get("token")))
	who, err := c.opts.Identify(r.Context(), token)
	switch {
	case errors.Is(err, auth.ErrProfiles):
		shown.Problem, shown.Hint = "The scopes of the token name more than one profile.",
			"Ask the operator of the identity provider"
	case err != nil && !errors.Is(err, auth.ErrInvalid) && !errors.Is(err, auth.ErrNone):
		c.toSignIn(w, r, err)
		return
	case err != nil && c.failures.tooMany(r.RemoteAddr): // a valid token is never refused for the failures of others
		c.tooManyFailures(w)
		return
	case err != nil:
		c.failures.add(r.RemoteAddr)
		shown.Problem, shown.Hint = "The token is not valid: it is unknown, has expired or was revoked.",
			"airlock tokens list shows those there are, airlock tokens create makes one"
	case !isPerson(who):
		c.failures.add(r.RemoteAddr)
		shown.Problem, shown.Hint = "The token is an agent's, and these pages are for people.",
			"airlock tokens create makes one for a person"
	default:
		c.begin(w, r, &session{token: token, account: who.Account()}, shown.Next)
		return
	}
	c.showSignIn(w, http.StatusForbidden, shown)
}

// SignInAccount returns the account of a request that signs in with a valid token. It reads the body of the request and
// provides it again.
func (c *Console) SignInAccount(r *http.Request) (account string, ok bool) {
	if r.Method != http.MethodPost || r.URL.Path != signInPath {
		return "", false
	}
	form, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	r.Body = &replayed{io.MultiReader(bytes.NewReader(form), r.Body), r.Body}
	values, parseErr := url.ParseQuery(string(form))
	if err != nil || parseErr != nil {
		return "", false
	}
	who, err := c.opts.Identify(r.Context(), secret.New(strings.TrimSpace(values.Get("token"))))
	return who.Account(), err == nil
}

// replayed is a body of which a part was read before.
type replayed struct {
	io.Reader
	io.Closer
}

// tooManyFailures refuses a sign-in because of the failures of its network.
func (c *Console) tooManyFailures(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	c.showSignIn(w, http.StatusTooManyRequests, signIn{
		Problem: "Too many sign-ins have failed from your network.", Hint: "Wait a minute, then try again",
	})
}

// open opens a session for a browser and replaces its old session. It reports whether it did.
func (c *Console) open(w http.ResponseWriter, r *http.Request, made *session) bool {
	c.sessions.end(c.sessionID(r))
	id, err := c.sessions.begin(made)
	if err != nil {
		w.Header().Set("Retry-After", "60")
		c.showSignIn(w, http.StatusServiceUnavailable,
			signIn{Problem: "Too many people are signed in.", Hint: "Try again later"})
		return false
	}
	c.share(r.Context(), made)
	http.SetCookie(w, c.cookie(id))
	return true
}

// begin opens a session for a browser and redirects it.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, made *session, next string) {
	if !c.open(w, r, made) {
		return
	}
	w.Header().Set("Location", localPath(next))
	w.WriteHeader(http.StatusSeeOther)
}

// signOut ends the session, and what was started with the sign-in of a person at the OpenID provider. It requires the
// form token, so that another site cannot sign a person out.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	q, err := c.query(r)
	if err != nil {
		c.toSignIn(w, r, err)
		return
	}
	if _, err := c.show(page{show: func(*Console, *query) (view, error) { return view{}, nil }}, q); err != nil {
		c.refuse(w, q, err)
		return
	}
	if q.session.person != nil {
		if err := c.openID.signIn.SignOut(q.Context(), *q.session.person); err != nil {
			c.refuse(w, q, err)
			return
		}
	}
	c.sessions.end(c.sessionID(r))
	http.SetCookie(w, c.cookie(""))
	w.Header().Set("Location", signInPath)
	w.WriteHeader(http.StatusSeeOther)
}
