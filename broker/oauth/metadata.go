package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// resourceMetadata is the metadata of a protected resource (RFC 9728, section 2).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
}

// serverMetadata is the metadata of an authorization server (RFC 8414, section 2;
// OpenID Connect Discovery 1.0, section 3).
type serverMetadata struct {
	Issuer string `json:"issuer"`
	endpoints
	ScopesSupported []string `json:"scopes_supported"`
	GrantTypes      []string `json:"grant_types_supported"`
	AuthMethods     []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeKinds  []string `json:"code_challenge_methods_supported"`
	// TakesDocuments means that a client may be the URL of a metadata document.
	TakesDocuments bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer    bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207, section 3
	DPoPAlgorithms []string `json:"dpop_signing_alg_values_supported"`
}

type endpoints struct {
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	Registration  string `json:"registration_endpoint"`
	Revocation    string `json:"revocation_endpoint"`
	UserInfo      string `json:"userinfo_endpoint"`
}

// errNoSignIn is returned if a server publishes no metadata about signing in.
var errNoSignIn = errors.New(
	"it does not say how to sign in: it has no metadata of a protected resource (RFC 9728) and is not an " +
		"authorization server itself")

// discovered is a resource and the authorization server that signs in for it.
type discovered struct {
	resource resourceMetadata
	server   serverMetadata
}

// discover finds out which authorization server signs in for the server, and for which
// resource.
func (w *wire) discover(ctx context.Context, config Config, challenge Challenge) (discovered, error) {
	var found discovered
	var err error
	found.resource, err = w.resource(ctx, config.URL, challenge.Metadata)
	assumed := errors.Is(err, errMissing)
	if assumed { // as in MCP 2025-03-26: the server is its authorization server
		found.resource = resourceMetadata{Resource: config.URL, AuthorizationServers: []string{originOf(config.URL)}}
	} else if err != nil {
		return found, err
	}
	issuer := config.Issuer
	switch names := found.resource.AuthorizationServers; {
	case len(names) == 0:
		return found, errors.New("its metadata name no authorization server")
	case issuer == "":
		issuer = names[0]
	case !assumed && !slices.ContainsFunc(names, func(name string) bool { return sameIssuer(name, issuer) }):
		return found, fmt.Errorf("it signs in with %s, and not with the configured issuer %s", quoteAll(names),
			quote(issuer))
	}
	found.server, err = w.server(ctx, issuer)
	switch {
	case errors.Is(err, errMissing) && assumed:
		err = errNoSignIn
	case errors.Is(err, errMissing):
		err = fmt.Errorf("its authorization server %s has no metadata (RFC 8414, OpenID Connect Discovery)",
			plain(issuer))
	}
	return found, err
}

// resource reads the metadata of the protected resource: at the address of the challenge, at
// the path of the endpoint, at the root (MCP, Protected Resource Metadata Discovery).
func (w *wire) resource(ctx context.Context, server, challenged string) (resourceMetadata, error) {
	for _, address := range union([]string{challenged, wellKnown(server, "oauth-protected-resource"),
		wellKnown(originOf(server), "oauth-protected-resource")}) {
		var found resourceMetadata
		err := w.document(ctx, address, &found)
		switch {
		case errors.Is(err, errMissing):
			continue
		case err != nil:
			return found, err
		case !isFor(found.Resource, server, address):
			return found, fmt.Errorf("its metadata are those of another resource, %s: the user is not asked to sign in",
				quote(found.Resource))
		}
		return found, nil
	}
	return resourceMetadata{}, errMissing
}

// isFor reports whether metadata from an address may speak for a server (RFC 9728,
// section 3.3): they are for the server's own URL, or for a resource above it in the
// same origin whose own metadata are at that very address, which nothing below it decides.
func isFor(resource, server, address string) bool {
	if trimmed(resource) == trimmed(server) {
		return resource != ""
	}
	r, err := url.Parse(resource)
	s, serverErr := url.Parse(server)
	if err != nil || serverErr != nil || r.RawQuery != "" || r.Fragment != "" ||
		originOf(resource) != originOf(server) {
		return false
	}
	above := strings.TrimSuffix(r.Path, "/") + "/"
	return strings.HasPrefix(s.Path, above) && !strings.Contains(s.Path, "/..") &&
		address == wellKnown(strings.TrimSuffix(resource, "/"), "oauth-protected-resource")
}

// server reads the metadata of an authorization server (MCP, Authorization Server
// Metadata Discovery).
func (w *wire) server(ctx context.Context, issuer string) (serverMetadata, error) {
	if err := secure(issuer); err != nil {
		return serverMetadata{}, fmt.Errorf("the authorization server %s: %w", plain(issuer), err)
	}
	addresses := union([]string{
		wellKnown(issuer, "oauth-authorization-server"), wellKnown(issuer, "openid-configuration"),
		strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration",
	})
	for _, address := range addresses {
		var found serverMetadata
		err := w.document(ctx, address, &found)
		switch {
		case errors.Is(err, errMissing):
			continue
		case err != nil:
			return found, err
		case !sameIssuer(found.Issuer, issuer):
			return found, fmt.Errorf(
				"the metadata of the authorization server %s are those of %s: the user is not asked to sign in",
				plain(issuer), quote(found.Issuer))
		}
		return found, found.endpoints.check()
	}
	return serverMetadata{}, errMissing
}

// check refuses endpoints that credentials may not go to.
func (e endpoints) check() error {
	if e.Token == "" {
		return errors.New("the authorization server names no token endpoint")
	}
	for _, address := range []string{e.Authorization, e.Token, e.Registration, e.Revocation, e.UserInfo} {
		if address == "" {
			continue
		}
		if err := secure(address); err != nil {
			return fmt.Errorf("the authorization server names the endpoint %s: %w", plain(address), err)
		}
	}
	return nil
}

// wellKnown inserts a well-known name before the path of a URL (RFC 8414, section 3.1).
func wellKnown(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	return originOf(address) + "/.well-known/" + name + path
}

// originOf returns scheme, host and port.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host)
}

// trimmed is a URL as it is compared: scheme and host in lower case, without a slash at
// its end.
func trimmed(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return strings.TrimSuffix(u.String(), "/")
}

// sameIssuer compares issuers as RFC 8414, section 3.3, demands, but for a slash behind
// a bare host, which programs add to URLs that they write.
func sameIssuer(a, b string) bool {
	bare := func(text string) string {
		if rest := strings.TrimSuffix(text, "/"); rest != text && strings.Count(rest, "/") == 2 {
			return rest
		}
		return text
	}
	return a != "" && bare(a) == bare(b)
}
