package oauth

import (
	"cmp"
	"context"
	"net/http"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// profile are the claims that name an account (OpenID Connect Core 1.0, section 5.1).
type profile struct {
	Email    string `json:"email"`
	Username string `json:"preferred_username"`
	Name     string `json:"name"`
	Subject  string `json:"sub"`
}

// text returns the best known name of the account, made fit for a line of a terminal.
func (p profile) text() string {
	return visible.Text(truncate.Characters(cmp.Or(p.Email, p.Username, p.Name, p.Subject), maxQuoted))
}

// account returns the account of a sign-in: from the ID token, which came straight from the token endpoint and so needs
// no check of its signature (OpenID Connect Core 1.0, section 3.1.3.7), or else from the userinfo endpoint. It is empty
// if the authorization server has neither. The account is shown to the person, and decides nothing.
func (w *wire) account(ctx context.Context, r *record, got issued) string {
	var p profile
	_ = readClaims(got.ID, &p) // an ID token that cannot be read names no account
	if p.text() != "" || r.At.UserInfo == "" || len(r.Key) > 0 || secure(r.At.UserInfo) != nil {
		return p.text()
	}
	if w.userInfo(ctx, r.At.UserInfo, r.Tokens.Access, &p) != nil {
		return ""
	}
	return p.text()
}

// userInfo reads the claims of the userinfo endpoint (OpenID Connect Core 1.0, section 5.3).
func (w *wire) userInfo(ctx context.Context, endpoint, access string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+access)
	status, _, body, err := w.send(request)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return &refusal{status: status}
	}
	return strictjson.UnmarshalOpen(body, into)
}
