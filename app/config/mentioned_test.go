package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Possible credentials are found in files that cannot be loaded for any reason. Names and
// ordinary values are not taken for credentials.
func TestMentioned(t *testing.T) {
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"CRM_TOKEN": "value-of-crm", "REGION": "eu-central-1", "Q": "value-of-q"}[name]
		return value, ok
	}
	for _, tt := range []struct{ name, file, want string }{
		{"under a name", "mcpServers: {a: {env: {API_TOKEN: tango!xray}}}", "tango!xray"},
		{"behind a mistake", "sandbox: 5\nmcpServers: {a: {env: {API_TOKEN: tango!xray}}}", "tango!xray"},
		{"in a header", `mcpServers: {a: {headers: {Authorization: "Bearer tango!xray"}}}`, "tango!xray"},
		{"in a flag", "mcpServers: {a: {args: [--api-key, tango!xray]}}", "tango!xray"},
		{"in an address", "mcpServers: {a: {url: 'https://ann:tango!xray@host/'}}", "tango!xray"},
		{"through an alias", "x: &y tango!xray\nmcpServers: {a: {env: {API_TOKEN: *y}}}", "tango!xray"},
		{"a variable", `mcpServers: {a: {args: ["${CRM_TOKEN}"]}}`, "value-of-crm"},
		{"a default", `mcpServers: {a: {args: ["${CRM_TOKEN:-tango!xray}"]}}`, "tango!xray"},
		{"a reference", `mcpServers: {a: {env: {X: "env:Q"}}}`, "value-of-q"},
		{"as a reference's name", `mcpServers: {a: {env: {X: "keyring:c4nary-held-0123456789"}}}`,
			"c4nary-held-0123456789"},
		{"as a variable's name", `mcpServers: {a: {env: {X: "${c4nary-held-0123456789}"}}}`, "c4nary-held-0123456789"},
		{"as a key", "c4nary-held-0123456789: 1", "c4nary-held-0123456789"},
		{"in what is no YAML", "mcpServers: [\n a: {env: {API_TOKEN: \"tango!xray\"}}", "tango!xray"},
		{"as an alias that is not there", "mcpServers: *c4nary-held-0123456789", "c4nary-held-0123456789"},
		{"nothing in names",
			`mcpServers: {my-server: {command: node, env: {CRM_API_TOKEN: "env:CRM_API_TOKEN_2", REGION: ` +
				`"${REGION}"}}}`, ""},
		{"nothing in lists of names", "servers: {a: {secrets: [TENNANT], public: [SITE_KEY]}}", ""},
		{"nothing ordinary", "mcpServers: {a: {env: {NODE_ENV: production, API_TOKEN: changeme, LOG: /var/log/a}}}",
			""},
	} {
		path := filepath.Join(t.TempDir(), "airlock.yaml")
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, value := range Mentioned(path, env) {
			got = append(got, value.Reveal())
		}
		if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
