package cli

import (
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/app/config"
)

// upstreamConfigs hands each configured server to the package that connects it.
func upstreamConfigs(c *config.Config) []upstream.Config {
	configs := make([]upstream.Config, 0, len(c.Servers))
	for _, server := range c.Servers {
		configs = append(configs, upstream.Config{
			ID: server.ID, Command: server.Command, Args: server.Args, Env: reveal(server.Env), Dir: server.Cwd,
			URL: server.URL, Headers: reveal(server.Headers),
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
