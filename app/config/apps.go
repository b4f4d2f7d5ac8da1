package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/catalog"
)

// apps reads servers.NAME.apps, the grant for the server's MCP Apps. The keys are the members of _meta.ui.csp.
func (d *decoder) apps(to *catalog.AppGrant) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = catalog.AppGrant{Origins: map[string][]string{}}
		return d.object(n, path, d.appFields(to))
	}
}

func (d *decoder) appFields(to *catalog.AppGrant) []field {
	fields := []field{{key: "domain", val: free{&to.Domain}}, {key: "permissions", read: d.appPermissions(to)}}
	for _, member := range catalog.AppOrigins() {
		fields = append(fields, field{key: member, read: d.appOrigins(to.Origins, member)})
	}
	return fields
}

// appOrigins reads a list of origins.
func (d *decoder) appOrigins(to map[string][]string, member string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			if err != nil {
				return err
			}
			origin, ok := catalog.ParseAppOrigin(text)
			if !ok {
				return d.fail(n, "write it like https://api.example.com or https://*.example.com",
					"%s is not an origin: %q", path, text)
			}
			to[member] = append(to[member], origin)
			return nil
		})
	}
}

// appPermissions reads a list of permissions of the browser.
func (d *decoder) appPermissions(to *catalog.AppGrant) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			if err == nil && !slices.Contains(catalog.AppPermissions(), text) {
				err = d.fail(n, "", "%s must be one of %s, not %q", path,
					strings.Join(catalog.AppPermissions(), ", "), text)
			}
			to.Permissions = append(to.Permissions, text)
			return err
		})
	}
}
