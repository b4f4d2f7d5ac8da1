package auth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Metadata is the metadata of a protected resource (RFC 9728, section 2).
type Metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// face is the suffix of the paths of MCP endpoints. The audience of tokens is the URL of the
// endpoint whose path is only this suffix.
const face = "/mcp"

// resource returns the resource of a path for the issuer (RFC 8707). For an MCP endpoint this is
// its URL, because clients require that (RFC 9728, section 3.3). For all other paths it is the
// configured audience. MCP endpoints other than /mcp accept tokens for both.
func (i *Issuer) resource(path string) string {
	base, ok := strings.CutSuffix(i.config.Audience, face)
	if !ok || !strings.HasSuffix(path, face) {
		return i.config.Audience
	}
	return base + path
}

// Metadata returns the metadata for a path.
func (i *Issuer) Metadata(path string) Metadata {
	m := Metadata{Resource: i.resource(path), AuthorizationServers: []string{i.config.Issuer},
		BearerMethods: []string{"header"}, ResourceName: "Airlock"}
	for _, scope := range i.scopes {
		m.ScopesSupported = append(m.ScopesSupported, scope.Name)
	}
	return m
}

// MetadataPath is the path of the metadata of a resource without a path (RFC 9728, section 3.1).
const MetadataPath = "/.well-known/oauth-protected-resource"

// MetadataURL returns the URL of the metadata for a path. It has MetadataPath between the host and
// the path of the resource.
func (i *Issuer) MetadataURL(path string) string {
	u, err := url.Parse(i.resource(path))
	if err != nil { // the configuration was checked
		return ""
	}
	return u.Scheme + "://" + u.Host + MetadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Describe answers a request for the metadata of one of the paths, and reports whether it was one.
// The metadata needs no authentication and is for pages of all origins.
func (i *Issuer) Describe(w http.ResponseWriter, r *http.Request, paths ...string) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	metadata, found := i.Metadata(face), r.URL.Path == MetadataPath
	for _, path := range paths {
		u, err := url.Parse(i.MetadataURL(path))
		// A proxy may have removed the prefix of the resource's path.
		if err == nil && (r.URL.Path == u.Path || r.URL.Path == MetadataPath+path) {
			metadata, found = i.Metadata(path), true
		}
	}
	if !found {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(metadata) // an error means that the client has disconnected
	return true
}
