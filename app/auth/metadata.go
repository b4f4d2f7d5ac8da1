package auth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Metadata is what a protected resource says about itself (RFC 9728, section 2).
type Metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// face is how the path of an MCP face ends. The audience of tokens is the URL of the
// one that has no more than this.
const face = "/mcp"

// resource is what a path is to the issuer (RFC 8707): an MCP face its URL, since
// clients ask for no other and take no other (RFC 9728, section 3.3); everything else
// the configured audience. A face beside /mcp takes tokens for either.
func (i *Issuer) resource(path string) string {
	base, ok := strings.CutSuffix(i.config.Audience, face)
	if !ok || !strings.HasSuffix(path, face) {
		return i.config.Audience
	}
	return base + path
}

// Metadata returns those of a path.
func (i *Issuer) Metadata(path string) Metadata {
	m := Metadata{Resource: i.resource(path), AuthorizationServers: []string{i.config.Issuer}, BearerMethods: []string{"header"}, ResourceName: "Airlock"}
	for _, scope := range i.scopes {
		m.ScopesSupported = append(m.ScopesSupported, scope.Name)
	}
	return m
}

// MetadataPath is where metadata are under the origin of a resource's URL, without a
// path of the resource (RFC 9728, section 3.1).
const MetadataPath = "/.well-known/oauth-protected-resource"

// MetadataURL is where the metadata of a path are: between host and path of the
// resource that it is.
func (i *Issuer) MetadataURL(path string) string {
	u, err := url.Parse(i.resource(path))
	if err != nil { // the configuration was checked
		return ""
	}
	return u.Scheme + "://" + u.Host + MetadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Describe adds to mux the metadata of paths. They are for everyone, programs in web
// pages included.
func (i *Issuer) Describe(mux *http.ServeMux, paths ...string) {
	told := map[string]Metadata{MetadataPath: i.Metadata(face)}
	for _, path := range paths {
		u, err := url.Parse(i.MetadataURL(path))
		if err != nil {
			continue
		}
		told[u.Path] = i.Metadata(path)
		told[MetadataPath+path] = i.Metadata(path) // a proxy may have taken a prefix away
	}
	for at, metadata := range told {
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_ = json.NewEncoder(w).Encode(metadata) // an error means that the client has disconnected
		})
	}
}
