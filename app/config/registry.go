package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Registry configures the MCP registry in which `airlock servers search` and `airlock servers add` find servers.
type Registry struct {
	URL   string       // without the version of the API
	Token secret.Value // of the registry, or a reference; empty if it needs none
	// Allow are the servers that may be added: NAME, NAME@VERSION or NAMESPACE/*. nil allows all servers.
	Allow []string
}

func defaultRegistry() Registry { return Registry{URL: "https://registry.modelcontextprotocol.io"} }

// registryEntry matches the entries of Registry.Allow. Names are those of the registry's API.
var registryEntry = lazyregexp.New(`^[a-zA-Z0-9.-]+/(\*|[a-zA-Z0-9._-]+(@[a-zA-Z0-9.+_-]{1,255})?)$`)

func (d *decoder) registryFields(r *Registry) []field {
	return []field{
		{key: "url", val: hookURL{&r.URL}},
		{key: "token", read: d.secret(&r.Token)},
		{key: "allow", read: func(n *yaml.Node, path string) error {
			r.Allow = []string{}
			return d.items(n, path, func(n *yaml.Node, path string) error {
				entry, err := d.text(n, path)
				if err != nil {
					return err
				}
				if !registryEntry.MatchString(entry) {
					return d.fail(n, "write io.github.acme/weather, io.github.acme/weather@1.2.0 or io.github.acme/*",
						"%s is not the name of a server in a registry: %q", path, entry)
				}
				r.Allow = append(r.Allow, entry)
				return nil
			})
		}},
	}
}

// Permits reports whether a server of the registry may be added. version is the version that the configuration pins,
// or empty.
func (r Registry) Permits(server string) (version string, ok bool) {
	if r.Allow == nil {
		return "", true
	}
	namespace, _, _ := strings.Cut(server, "/")
	for _, entry := range r.Allow {
		name, pinned, _ := strings.Cut(entry, "@")
		if name == server { // overrides its namespace
			return pinned, true
		}
		ok = ok || name == namespace+"/*"
	}
	return "", ok
}
