package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Auth is the OAuth 2.1 authorization server whose access tokens `airlock serve` accepts in
// addition to Airlock's tokens. The zero value means that only Airlock's tokens are accepted.
type Auth struct {
	Issuer   string // the iss claim of its tokens
	Audience string // the aud claim of its tokens: the URL of our /mcp (RFC 8707)
	JWKS     string // URL of its keys; if empty, the jwks_uri of its metadata
	Types    []string
	Scopes   []Scope // in the order of the file; if empty, scopes are those of Airlock's tokens
}

// Scope is what a scope of the authorization server allows.
type Scope struct {
	Name    string
	Rights  []string // scopes of Airlock's tokens
	Profile string   // the profile of its callers; empty for the default profile
}

// AuthRights are the rights that a scope can give.
var AuthRights = []string{"admin", "agents", "agents:autonomous", "agents:supervised", "agents:untrusted", "approve",
	"audit", "run", "slash", "verify"}

func defaultAuth() Auth { return Auth{Types: []string{"at+jwt"}} }

func (d *decoder) authFields(a *Auth) []field {
	return []field{
		{key: "issuer", read: d.secureURL(&a.Issuer)},
		{key: "audience", read: d.secureURL(&a.Audience)},
		{key: "jwks", read: d.secureURL(&a.JWKS)},
		{key: "types", read: func(n *yaml.Node, path string) error {
			a.Types = nil
			return d.texts(&a.Types)(n, path)
		}},
		{key: "scopes", read: d.scopes(&a.Scopes)},
	}
}

func (d *decoder) scopeFields(s *Scope) []field {
	return []field{{key: "rights", read: d.texts(&s.Rights)}, {key: "profile", val: free{&s.Profile}}}
}

// auth reads the section and checks that its values are consistent.
func (d *decoder) auth(a *Auth) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if err := d.object(n, path, d.authFields(a)); err != nil {
			return err
		}
		switch {
		case a.Issuer == "" && (a.Audience != "" || a.JWKS != "" || len(a.Scopes) > 0):
			return d.fail(n, "write auth.issuer: https://login.example.com", "%s has no issuer", path)
		case a.Issuer != "" && a.Audience == "":
			return d.fail(n, "write auth.audience: https://airlock.example.com/mcp, and have the issuer put it into the tokens", "%s has no audience: a token for any other service would be taken", path)
		case a.Issuer != "" && len(a.Types) == 0:
			return d.fail(n, "write auth.types: [at+jwt]", "%s takes no type of token", path)
		}
		return nil
	}
}

func (d *decoder) scopes(to *[]Scope) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.entries(n, path, func(key, val *yaml.Node) error {
			s, at := Scope{Name: key.Value}, join(path, key.Value)
			if !isScope(s.Name) {
				return d.fail(key, "", "%q is not a name of a scope (RFC 6749, section 3.3)", s.Name)
			}
			if err := d.object(val, at, d.scopeFields(&s)); err != nil {
				return err
			}
			for _, right := range s.Rights {
				if !slices.Contains(AuthRights, right) {
					return d.fail(val, "the rights are "+strings.Join(AuthRights, ", "), "%s has no such right: %q", at,
						right)
				}
			}
			if len(s.Rights) == 0 {
				return d.fail(val, "write {rights: [run]}", "%s gives no right", at)
			}
			*to = append(*to, s)
			return nil
		})
	}
}

// isScope reports whether a text is a scope-token (RFC 6749, section 3.3).
func isScope(text string) bool {
	for _, r := range text {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return false
		}
	}
	return text != ""
}

// secureURL reads the URL of an HTTPS server, or of one on the loopback interface.
func (d *decoder) secureURL(to *string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		text, err := d.text(n, path)
		if err != nil {
			return err
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" &&
			(u.Scheme != "http" || !isLoopbackName(u.Hostname())) {
			return d.fail(n, "write https:// and a host, without a credential, a query or a fragment",
				"%s is not the URL of a server that can be trusted: %q", path, n.Value)
		}
		*to = text
		return nil
	}
}

func isLoopbackName(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
