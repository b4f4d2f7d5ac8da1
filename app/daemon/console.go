package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// openConsole creates the console if it is configured and the daemon does not serve only the
// tools of the kernel.
func (d *Daemon) openConsole() (err error) {
	serve := d.opts.Config.Serve
	if !serve.Console || d.opts.Kernel {
		return nil
	}
	d.console, err = console.New(console.Options{
		System: d.opts.System, Lists: d.lists,
		Approvals: d.opts.System.Approvals(), Agents: d.known, Remotes: d.trust, Tokens: d.known,
		Identify: d.identify.Token, While: d.known.Authority().While, Status: d.consoleStatus, Hosts: serve.Hosts,
		OpenID: openIDSignIn{d}, URL: d.ConsoleURL, Roles: d.opts.System.Roles, Clean: d.opts.System.Gate().Text,
		Secure: serve.Certificate != "" || serve.Proxy, Logger: d.log,
	})
	if err == nil {
		d.bounded.signedIn = d.console.Account
		d.undo.Add(d.console.Close)
	}
	return err
}

// openIDSignIn signs people in with OpenID Connect at the issuer that is accepted now.
type openIDSignIn struct{ d *Daemon }

var _ console.OpenIDSignIn = openIDSignIn{}

// SignIn implements console.OpenIDSignIn.
func (p openIDSignIn) SignIn(ctx context.Context) (string, config.SignIn, error) {
	issuer, client, err := p.d.issuer.Load().SignIn()
	if err == nil {
		client.ClientSecret, err = p.d.signInSecret(ctx, client)
	}
	return issuer, client, err
}

// Identify implements console.OpenIDSignIn.
func (p openIDSignIn) Identify(ctx context.Context, token secret.Value, nonce string,
	info map[string]json.RawMessage) (auth.Person, error) {
	return p.d.issuer.Load().Person(ctx, token, nonce, info)
}

// Caller implements console.OpenIDSignIn.
func (p openIDSignIn) Caller(ctx context.Context, person auth.Person) (caller.Caller, error) {
	return p.d.identify.Person(ctx, person)
}

// SignOut implements console.OpenIDSignIn.
func (p openIDSignIn) SignOut(ctx context.Context, person auth.Person) error {
	err := p.d.known.Tokens().SignOut(ctx, person)
	p.d.known.Authority().Changed()
	return err
}

// Hold implements console.OpenIDSignIn.
func (p openIDSignIn) Hold(credential string) { p.d.opts.System.Hold(credential) }

func (d *Daemon) consoleStatus(ctx context.Context) console.Status {
	s := d.status(ctx)
	load := d.opts.System.Load()
	status := console.Status{
		State: s.State, Version: s.Version, URL: s.URL, Since: s.Since, Hosts: s.Hosts, Runs: s.Runs,
		Sandboxes: load.Ready, Working: load.InUse, Waiting: load.Waiting,
	}
	if s.Reason != "" {
		status.Problem = d.opts.System.Gate().Sentence(s.Reason)
	}
	gate := d.opts.System.Gate()
	status.Pending, status.PendingHint = gate.Text(s.Pending), gate.Text(s.PendingHint)
	return status
}

// ConsoleURL returns the URL of the console for a browser: serve.publicURL, if it is configured. Otherwise its host is
// the first name of serve.hosts if the daemon or a proxy terminates TLS.
func (d *Daemon) ConsoleURL() string {
	serve := d.opts.Config.Serve
	if serve.PublicURL != "" {
		return strings.TrimSuffix(serve.PublicURL, "/")
	}
	if len(serve.Hosts) == 0 || serve.Certificate == "" && !serve.Proxy {
		return d.opts.URL
	}
	host := serve.Hosts[0]
	if u, err := url.Parse(d.opts.URL); err == nil && !serve.Proxy && u.Port() != "443" {
		host = net.JoinHostPort(host, u.Port())
	}
	return "https://" + host
}

// The scopes of the session of a sign-in link: all scopes of the user that runs Airlock, or
// read-only scopes if the process that requests the link may not approve, such as a shell of
// the agent's host.
var (
	userScopes = []string{auth.ScopeAdmin, caller.ScopeAllRuns}
	lookScopes = []string{auth.ScopeRun, auth.ScopeAudit, caller.ScopeAllRuns}
)

// consoleLink creates a sign-in link for the peer, a process of this user.
func (d *Daemon) consoleLink(conn *net.UnixConn) (join.Link, error) {
	if d.console == nil {
		return join.Link{}, errors.New("the console is switched off: serve.console")
	}
	who := caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Session: "console", Scopes: userScopes}
	var link join.Link
	if err := d.mayApprove(conn, ""); err != nil {
		who.Scopes, link.Limited = lookScopes, err.Error()
	}
	path, err := d.console.Link(who)
	link.URL = d.ConsoleURL() + path
	return link, err
}

// mayApprove returns nil if the peer process may approve calls of a session now, see
// approval.Desk.MayApprove. It checks last that the peer is alive, so that the process ID
// cannot have been reused before.
func (d *Daemon) mayApprove(conn *net.UnixConn, session string) error {
	pid, _, err := procfs.Peer(conn)
	if err != nil {
		return err
	}
	if err := d.opts.System.Approvals().MayApprove(pid, session); err != nil {
		return err
	}
	if !procfs.PeerLives(conn) {
		return fmt.Errorf("%w: the process has ended", approval.ErrNoTerminal)
	}
	return nil
}
