package config

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// OAuth configures how Airlock signs in to one server. With the zero value everything is
// discovered.
type OAuth struct {
	Grant        string // one of OAuthGrants; empty for the first
	Issuer       string // the only accepted authorization server; empty: the one that the server names
	Scopes       []string
	RedirectPort int  // 0: any
	DPoP         bool // also if the server does not ask for it
	Shared       bool // callers of all principals use the sign-in of the user that runs Airlock
	OAuthClient
	AssertionFile string // absolute
	Provider      OAuthProvider
	Delegate      bool // the identity provider is told who acts for the user
}

// OAuthClient is the OAuth client of Airlock at an authorization server.
type OAuthClient struct {
	ClientID       string
	ClientSecret   secret.Value
	ClientKey      secret.Value // PEM
	ClientDocument string       // the URL of a client-id metadata document
}

// OAuthProvider is the identity provider of the grants enterprise and token_exchange.
type OAuthProvider struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Value
	ClientKey    secret.Value // PEM
}

// OAuthGrants are the values of servers.*.oauth.grant.
var OAuthGrants = []string{"authorization_code", "client_credentials", "jwt_bearer", "enterprise", "token_exchange"}

func (d *decoder) oauthFields(o *OAuth) []field {
	grant := "authorization_code"
	return []field{
		{key: "grant", val: oauthGrant{word{&grant, OAuthGrants}, o}},
		{key: "issuer", val: free{&o.Issuer}},
		{key: "scopes", read: d.texts(&o.Scopes)},
		{key: "redirectPort", val: count[int]{&o.RedirectPort, 0, 65535}},
		{key: "dpop", val: flag{&o.DPoP}},
		{key: "shared", val: flag{&o.Shared}},
		{key: "clientId", val: free{&o.ClientID}},
		{key: "clientSecret", read: d.secret(&o.ClientSecret)},
		{key: "clientKey", read: d.secret(&o.ClientKey)},
		{key: "clientDocument", val: free{&o.ClientDocument}},
		{key: "assertionFile", read: d.path(&o.AssertionFile)},
		{key: "provider", read: func(n *yaml.Node,
			path string) error {
			return d.object(n, path, d.oauthProviderFields(&o.Provider))
		}},
		{key: "delegate", val: flag{&o.Delegate}},
	}
}

func (d *decoder) oauthProviderFields(p *OAuthProvider) []field {
	return []field{
		{key: "issuer", val: free{&p.Issuer}},
		{key: "clientId", val: free{&p.ClientID}},
		{key: "clientSecret", read: d.secret(&p.ClientSecret)},
		{key: "clientKey", read: d.secret(&p.ClientKey)},
	}
}

// oauthGrant is the value of servers.*.oauth.grant. It stores the default as "".
type oauthGrant struct {
	word
	oauth *OAuth
}

func (g oauthGrant) set(text string) error {
	if err := g.word.set(text); err != nil {
		return err
	}
	if g.oauth.Grant = text; text == OAuthGrants[0] {
		g.oauth.Grant = ""
	}
	return nil
}

func (d *decoder) secret(to *secret.Value) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		text, err := d.text(n, path)
		*to = secret.New(text)
		return err
	}
}

// Secrets returns pointers to the credentials, by the key below servers.*.
func (o *OAuth) Secrets() map[string]*secret.Value {
	return map[string]*secret.Value{
		"oauth.clientSecret": &o.ClientSecret, "oauth.clientKey": &o.ClientKey,
		"oauth.provider.clientSecret": &o.Provider.ClientSecret, "oauth.provider.clientKey": &o.Provider.ClientKey,
	}
}

// SignsIn reports whether requests to the server carry the token of a sign-in: the server has
// a URL and no configured Authorization header.
func (s Server) SignsIn() bool {
	if s.URL == "" {
		return false
	}
	return !slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)),
		func(name string) bool { return strings.EqualFold(name, "Authorization") })
}

// oauthFits checks that the server supports a sign-in. at is the position of its settings.
func (d *decoder) oauthFits(s Server, at *yaml.Node) error {
	switch {
	case s.Settings.OAuth == nil:
		return nil
	case s.URL == "":
		return d.fail(at, "remove it: a program that Airlock starts gets its credentials in env",
			"servers.%s.oauth is about a server that has no url", s.ID)
	case !s.SignsIn():
		return d.fail(at, "keep one of the two",
			"servers.%s.oauth is about a server whose headers have an Authorization", s.ID)
	}
	return nil
}
