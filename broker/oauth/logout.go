package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// LoggedOut is the outcome of a logout.
type LoggedOut struct {
	WasSignedIn bool
	// NotRevoked is the reason why the tokens were not revoked. It is empty if they were
	// revoked or did not exist.
	NotRevoked string
}

// Logout deletes the stored tokens and then revokes them, if the authorization server supports that (RFC 7009). An
// authorization server that answers slowly does not delay the end of the sign-in.
func (s *Source) Logout(ctx context.Context) (LoggedOut, error) {
	var out LoggedOut
	_, err := s.reload()
	isUnreadable := isUnreadable(err)
	err = s.exclusively(ctx, isUnreadable, func(kept *record) error {
		if kept == nil && !isUnreadable {
			return nil
		}
		out.WasSignedIn = true
		if err := s.removeLocked(); err != nil {
			return err
		}
		if kept == nil {
			out.NotRevoked = "the stored sign-in cannot be read"
			return nil
		}
		if err := s.revoke(ctx, kept); err != nil {
			out.NotRevoked = err.Error()
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("signing out of %q: %w", s.config.ServerID, err)
	}
	return out, nil
}

func (s *Source) revoke(ctx context.Context, r *record) error {
	if r.Tokens.Refresh == "" && r.Tokens.Access == "" {
		return nil
	}
	if r.At.Revocation == "" {
		return errors.New("the authorization server offers no revocation")
	}
	w := newWire(s.newDialer(r.distance()))
	defer w.close()
	asker := s.requester(w, r, nil)
	for _, token := range []struct{ text, hint string }{{r.Tokens.Refresh, "refresh_token"},
		{r.Tokens.Access, "access_token"}} {
		if token.text == "" {
			continue
		}
		form := url.Values{"token": {token.text}, "token_type_hint": {token.hint}}
		header, err := asker.authenticate(form)
		if err != nil {
			return err
		}
		status, _, _, err := w.post(ctx, r.At.Revocation, form, header)
		switch {
		case err != nil:
			return err
		case status != 200:
			return &refusal{status: status}
		}
	}
	return nil
}
