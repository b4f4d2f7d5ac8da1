package system

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/broker/upstream"
)

// ResolveSecrets puts the credentials that the configuration names by reference
// into their places.
func ResolveSecrets(ctx context.Context, c *config.Config) error {
	places := secrets.New(&secrets.Options{
		AgeFile: c.Secrets.AgeFile, AgeIdentity: c.Secrets.AgeIdentity, KeyringService: c.Secrets.Keyring,
	})
	for _, server := range c.Servers {
		for _, values := range []map[string]config.Secret{server.Env, server.Headers} {
			for name, value := range values {
				if !secrets.IsReference(value.Reveal()) {
					continue
				}
				found, err := places.Lookup(ctx, value.Reveal())
				if err != nil {
					return &SetupError{fmt.Errorf("the credential %q of the server %q: %w", name, server.ID, err),
						"docs/configuration.md says where credentials can be kept"}
				}
				values[name] = config.NewSecret(found.Reveal())
			}
		}
	}
	return nil
}

// upstreamConfigs hands each configured server to the package that connects it.
func upstreamConfigs(c *config.Config) []upstream.Config {
	configs := make([]upstream.Config, 0, len(c.Servers))
	for _, server := range c.Servers {
		configs = append(configs, upstream.Config{
			ID: server.ID, Command: server.Command, Args: server.Args, Env: reveal(server.Env), Dir: server.Cwd,
			URL: server.URL, SSE: server.Transport == config.TransportSSE, Headers: reveal(server.Headers),
			StartTimeout: server.StartTimeout, CallTimeout: server.CallTimeout,
		})
	}
	return configs
}

func reveal(secrets map[string]config.Secret) map[string]string {
	revealed := make(map[string]string, len(secrets))
	for name, secret := range secrets {
		revealed[name] = secret.Reveal()
	}
	return revealed
}
