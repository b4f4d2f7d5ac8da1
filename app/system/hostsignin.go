package system

import (
	"context"
	"errors"
	"io"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// signIns signs people in to servers while their calls wait.
type signIns struct{ system *System }

var _ broker.SignIns = signIns{}

// errNoBrowser is why a caller cannot sign in from the host.
var errNoBrowser = errors.New("only the user of this machine signs in with a browser on it")

// SignIn implements broker.SignIns.
func (s signIns) SignIn(ctx context.Context, who caller.Caller, serverID string,
	invite func(page, site string)) (account string, err error) {
	if who.Kind != caller.Local {
		return "", errNoBrowser
	}
	login, err := s.system.OpenLogin(ctx, who, serverID)
	if err != nil {
		return "", err
	}
	signed, err := login.SignsIn(ctx, hostPerson{invite}, nil)
	if err == nil && s.system.catalog.upstreams != nil {
		err = s.system.catalog.upstreams.Refresh(ctx, serverID)
		s.system.catalog.listAgain(context.WithoutCancel(ctx))
	}
	return signed.Account, err
}

// hostPerson is the person behind an agent's host on this machine.
type hostPerson struct{ invite func(page, site string) }

var _ oauth.Person = hostPerson{}

// Invite implements oauth.Person. The start page is shown, because it has no secret in it.
func (p hostPerson) Invite(_ context.Context, i oauth.Invitation) error {
	p.invite(i.Start, i.Origin)
	return nil
}

// Paste implements oauth.Person.
func (hostPerson) Paste(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", io.EOF
}

// OwnsBrowser implements oauth.Person.
func (hostPerson) OwnsBrowser() bool { return true }

// Show implements oauth.Person. The audit log has the account.
func (hostPerson) Show(oauth.SignedIn) {}

// Strange implements oauth.Person.
func (hostPerson) Strange() {}
