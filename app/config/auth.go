package config

import (
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/policies"
)

// Auth is the OAuth 2.1 authorization server whose access tokens `airlock serve` accepts in
// addition to Airlock's tokens. The zero value means that only Airlock's tokens are accepted.
type Auth struct {
	Issuer   string // the iss claim of its tokens
	Audience string // the aud claim of its tokens: the URL of our /mcp (RFC 8707)
	JWKS     string // URL of its keys; if empty, the jwks_uri of its metadata
	Types    []string
	Scopes   []Scope // in the order of the file; if empty, scopes are those of Airlock's tokens
	// GroupsClaim is the claim with the groups of a person. Claims are further claims that policies see.
	GroupsClaim string
	Claims      []string
	Roles       []Role
	SignIn      SignIn
}

// Role has the members of a role: the members of groups, and single principals.
type Role struct {
	Name       string
	Groups     []string
	Principals []string
}

// SignIn is how people sign in to the console at the issuer, with OpenID Connect. Without a ClientID they cannot.
type SignIn struct {
	ClientID     string
	ClientSecret secret.Value // empty for a public client; a reference is resolved by app/daemon
	Scopes       []string     // to request beside openid
	Groups       []Scope      // the rights of the members of a group
	Everyone     Scope        // the rights of everyone; its name is empty
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

func defaultAuth() Auth { return Auth{Types: []string{"at+jwt"}, GroupsClaim: "groups"} }

func (d *decoder) authFields(a *Auth) []field {
	return []field{
		{key: "issuer", read: d.secureURL(&a.Issuer)},
		{key: "audience", read: d.secureURL(&a.Audience)},
		{key: "jwks", read: d.secureURL(&a.JWKS)},
		{key: "types", read: func(n *yaml.Node, path string) error {
			a.Types = nil
			return d.texts(&a.Types)(n, path)
		}},
		{key: "scopes", read: d.scopes(&a.Scopes, isScope, "a name of a scope (RFC 6749, section 3.3)")},
		{key: "groupsClaim", val: free{&a.GroupsClaim}},
		{key: "claims", read: d.texts(&a.Claims)},
		{key: "roles", read: d.roles(&a.Roles)},
		{key: "signIn", read: func(n *yaml.Node, path string) error {
			return d.object(n, path, d.signInFields(&a.SignIn))
		}},
	}
}

func (d *decoder) signInFields(s *SignIn) []field {
	return []field{
		{key: "clientId", val: free{&s.ClientID}},
		{key: "clientSecret", read: d.secret(&s.ClientSecret)},
		{key: "scopes", read: d.texts(&s.Scopes)},
		{key: "groups", read: d.scopes(&s.Groups, isText, "a name of a group")},
		{key: "everyone", read: func(n *yaml.Node, path string) error { return d.scope(n, path, &s.Everyone) }},
	}
}

func (d *decoder) roleFields(r *Role) []field {
	return []field{{key: "groups", read: d.texts(&r.Groups)}, {key: "principals", read: d.texts(&r.Principals)}}
}

// roles reads the roles that policies can ask for an approval.
func (d *decoder) roles(to *[]Role) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.entries(n, path, func(key, val *yaml.Node) error {
			r, at := Role{Name: key.Value}, join(path, key.Value)
			if !policies.IsRole(r.Name) {
				return d.fail(key, "use small letters, digits and -; owner is the person whose run it is",
					"%q is not a name for a role", r.Name)
			}
			if err := d.object(val, at, d.roleFields(&r)); err != nil {
				return err
			}
			if len(r.Groups)+len(r.Principals) == 0 {
				return d.fail(val, "write {groups: [finance]} or {principals: [ann]}", "%s has nobody in it", at)
			}
			*to = append(*to, r)
			return nil
		})
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
		case a.SignIn.ClientID == "" && child(n, "signIn") != nil:
			return d.fail(child(n, "signIn"), "write auth.signIn.clientId: the client of Airlock at the issuer",
				"%s has no client", join(path, "signIn"))
		case a.Issuer == "" && (a.Audience != "" || a.JWKS != "" || len(a.Scopes)+len(a.Claims) > 0 ||
			a.SignIn.ClientID != ""):
			return d.fail(n, "write auth.issuer: https://login.example.com", "%s has no issuer", path)
		case a.GroupsClaim == "":
			return d.fail(child(n, "groupsClaim"), "write auth.groupsClaim: groups", "%s is empty", join(path,
				"groupsClaim"))
		case a.Issuer != "" && a.Audience == "":
			return d.fail(n, "write auth.audience: https://airlock.example.com/mcp, and have the issuer put it into "+
				"the tokens", "%s has no audience: a token for any other service would be taken", path)
		case a.SignIn.ClientID != "" && a.SignIn.ClientID == a.Audience:
			return d.fail(n, "register another client for the console",
				"%s.signIn.clientId is the audience, so ID tokens would count as access tokens", path)
		case a.Issuer != "" && len(a.Types) == 0:
			return d.fail(n, "write auth.types: [at+jwt]", "%s takes no type of token", path)
		}
		return nil
	}
}

func (d *decoder) scopes(to *[]Scope, isName func(string) bool, what string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.entries(n, path, func(key, val *yaml.Node) error {
			s := Scope{Name: key.Value}
			if !isName(s.Name) {
				return d.fail(key, "", "%q is not %s", s.Name, what)
			}
			if err := d.scope(val, join(path, key.Value), &s); err != nil {
				return err
			}
			*to = append(*to, s)
			return nil
		})
	}
}

// scope reads the rights of a scope or a group.
func (d *decoder) scope(n *yaml.Node, path string, s *Scope) error {
	if err := d.object(n, path, d.scopeFields(s)); err != nil {
		return err
	}
	for _, right := range s.Rights {
		if !slices.Contains(AuthRights, right) {
			return d.fail(n, "the rights are "+strings.Join(AuthRights, ", "), "%s has no such right: %q", path, right)
		}
	}
	if len(s.Rights) == 0 {
		return d.fail(n, "write {rights: [run]}", "%s gives no right", path)
	}
	return nil
}

// isText reports whether a text is not empty and has no control characters.
func isText(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
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
			(u.Scheme != "http" || !reach.IsLoopback(u.Hostname())) {
			return d.fail(n, "write https:// and a host, without a credential, a query or a fragment",
				"%s is not the URL of a server that can be trusted: %q", path, n.Value)
		}
		*to = text
		return nil
	}
}
