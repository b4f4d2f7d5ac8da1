package upstreams

import (
	"context"
	"errors"
	"io"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// signIns signs people in to servers while their calls wait.
type signIns struct{ servers *Servers }

var _ broker.SignIns = signIns{}

// errNoBrowser is why a caller cannot sign in from the host.
var errNoBrowser = errors.New("without serve.publicURL, only the user of this machine can sign in with a browser")

// errNoList is why a caller cannot sign in to a server whose tools are not known.
var errNoList = errors.New("the user who runs Airlock must sign in first, so that the server's tools are known")

// errAgent is why an agent cannot sign in.
var errAgent = errors.New("an agent does not sign in: the person who registered it does")

// SignIn implements broker.SignIns.
func (s signIns) SignIn(ctx context.Context, who caller.Caller, serverID string,
	invite func(page, site string)) (account string, err error) {
	if who.Kind == caller.Agent {
		return "", errAgent
	}
	person := hostPerson{invite, nil}
	if who.Kind != caller.Local {
		person.receiver = s.servers.Receiver()
		if person.receiver == nil {
			return "", errNoBrowser
		}
		server, _ := s.servers.Snapshot(who).Server(serverID)
		if server.SignIn && who.Name() != setup.Principal() {
			return "", errNoList
		}
	}
	login, err := s.servers.OpenLogin(ctx, who, serverID)
	if err != nil {
		return "", err
	}
	signed, err := login.SignsIn(ctx, person, nil)
	if err == nil {
		err = s.servers.catalog.refreshOne(ctx, serverID)
	}
	return signed.Account, err
}

// Receiver returns the receiver of the answers of browsers on other machines. It is nil without serve.publicURL, and
// without the console, which shows the start pages.
func (s *Servers) Receiver() *oauth.Receiver { return s.opts.Receiver }

// hostPerson is the person behind an agent's host.
type hostPerson struct {
	invite   func(page, site string)
	receiver *oauth.Receiver // nil: the host is on this machine
}

var _ oauth.Remote = hostPerson{}

// Receiver implements oauth.Remote.
func (p hostPerson) Receiver() *oauth.Receiver { return p.receiver }

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
