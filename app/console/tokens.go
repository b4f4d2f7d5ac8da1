package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Tokens are the tokens that Airlock issued. Its methods are safe for concurrent use. by is the
// principal that acts.
type Tokens interface {
	Tokens() *auth.Tokens
	CreateToken(ctx context.Context, grant auth.Grant, by string) (auth.Token, secret.Value, error)
	// RevokeToken returns auth.ErrUnknown if no token has the ID. It may be called twice.
	RevokeToken(ctx context.Context, id, by string) error
}

// tokensSection lists the tokens, and makes and revokes them.
func tokensSection() section {
	return section{name: "Tokens", path: "/tokens", scope: auth.ScopeAdmin, template: "tokens", pages: []page{
		{pattern: "GET /tokens", scope: auth.ScopeAdmin, show: showTokens},
		{pattern: "POST /tokens", scope: auth.ScopeAdmin, show: createToken},
		{pattern: "POST /tokens/{token}/revoke", scope: auth.ScopeAdmin, show: revokeToken},
	}}
}

// tokensPage is the data of the list of tokens.
type tokensPage struct {
	Filter   periodFilter // by the time of creation
	Rows     []tokenRow
	Scopes   []string
	Lives    []tokenLife
	Made     string // the value of a token that was made for this answer; empty otherwise
	MadeName string
}

type tokenRow struct {
	auth.Token
	State, Class string
}

// tokenLife is how long a new token is valid.
type tokenLife struct {
	Label string
	Time  time.Duration
}

var tokenLives = []tokenLife{{"30 days", 30 * 24 * time.Hour}, {"90 days", 90 * 24 * time.Hour},
	{"1 day", 24 * time.Hour}, {"1 year", 365 * 24 * time.Hour}}

func showTokens(c *Console, q *query) (view, error) {
	list, err := c.opts.Tokens.Tokens().List(q.Context())
	if err != nil {
		return view{}, err
	}
	p := tokensPage{Filter: c.periodOf(q.URL.Query()), Scopes: auth.Scopes, Lives: tokenLives}
	for _, token := range list {
		if !reachesToken(q.who, token) || !p.Filter.period.Contains(token.Created) {
			continue
		}
		row := tokenRow{token, "valid", "ok"}
		switch {
		case token.Revoked != nil:
			row.State, row.Class = "revoked", "bad"
		case token.Expires != nil && !token.Expires.After(c.opts.Now()):
			row.State, row.Class = "expired", "bad"
		case token.Expires == nil:
			row.State, row.Class = "valid for ever", "waiting"
		}
		p.Rows = append(p.Rows, row)
	}
	slices.SortStableFunc(p.Rows, func(a, b tokenRow) int { // those that count first
		return strings.Compare(b.Class[:1], a.Class[:1])
	})
	return view{title: "Tokens", data: p}, nil
}

// createToken does what airlock tokens create does. The value is on the answer only.
func createToken(c *Console, q *query) (view, error) {
	grant := auth.Grant{Name: strings.TrimSpace(q.PostForm.Get("name")), Scopes: q.PostForm["scope"],
		Principal: strings.TrimSpace(q.PostForm.Get("principal"))}
	life := slices.IndexFunc(tokenLives, func(l tokenLife) bool { return l.Label == q.PostForm.Get("life") })
	if life < 0 {
		return view{}, &refusal{http.StatusUnprocessableEntity, "The form does not say how long the token is valid.",
			""}
	}
	grant.Expires = c.opts.Now().Add(tokenLives[life].Time)
	if err := grant.Check(); err != nil {
		return view{}, &refusal{http.StatusUnprocessableEntity, sentence(err.Error()), ""}
	}
	grant, err := grant.Narrow(q.who)
	if err != nil {
		return view{}, &refusal{http.StatusForbidden, sentence(err.Error()), ""}
	}
	_, value, err := c.opts.Tokens.CreateToken(q.Context(), grant, q.who.Name())
	if err != nil {
		return view{}, err
	}
	v, err := showTokens(c, q)
	if err != nil {
		return view{}, err
	}
	p := v.data.(tokensPage)
	p.Made, p.MadeName = value.Reveal(), grant.Name
	v.data = p
	return v, nil
}

// reachesToken reports whether a token has the caller's profile. A caller without a profile reaches all.
func reachesToken(who caller.Caller, token auth.Token) bool {
	return who.May(caller.People, caller.Change, caller.Object{Kind: caller.Token,
		Owner: caller.Owner{Profile: token.Profile}})
}

// revokeToken does what airlock tokens revoke does.
func revokeToken(c *Console, q *query) (view, error) {
	list, err := c.opts.Tokens.Tokens().List(q.Context())
	if err != nil {
		return view{}, err
	}
	id := q.PathValue("token")
	if !slices.ContainsFunc(list, func(t auth.Token) bool { return t.ID == id && reachesToken(q.who, t) }) {
		return view{}, notFound("token")
	}
	if err := c.opts.Tokens.RevokeToken(q.Context(), id, q.who.Name()); err != nil {
		return view{}, err
	}
	q.notify("The token is revoked.")
	return view{redirect: "/tokens"}, nil
}
