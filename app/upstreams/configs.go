package upstreams

import (
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Seen returns the servers that callers of the profile see, or all servers if profile is empty.
func Seen(c *config.Config, profile string) []config.Server {
	if profile == "" {
		return c.Servers
	}
	p, err := c.Profile(profile)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Servers), func(s config.Server) bool { return !p.ShowsServer(s.ID) })
}

// upstreamConfigs returns the configurations for connecting servers with the sign-ins of a
// principal.
func (c *Catalog) upstreamConfigs(servers []config.Server, principal string) ([]upstream.Config, error) {
	configs := make([]upstream.Config, 0, len(servers))
	for _, server := range servers {
		source, err := c.opts.State.SignIn(server, principal,
			func(credential string) { c.opts.Redactors.All.Hold(credential) })
		if err != nil {
			return nil, err
		}
		made := configOf(server)
		if server.Settings.Sandbox != nil {
			made.Launcher = c.contained.Launcher(server, c.config.Load().LockFile())
		}
		if source != nil { // an interface that holds a nil pointer is not nil
			made.Credentials, made.Met = source, source.Met()
		}
		configs = append(configs, made)
	}
	return configs, nil
}

// configOf returns the configuration for connecting a server, without a sign-in.
func configOf(server config.Server) upstream.Config {
	return upstream.Config{
		ID: server.ID, Command: server.Command, Args: server.Args, Env: reveal(server.Env), Dir: server.Cwd,
		URL: server.URL, SSE: server.Transport == config.TransportSSE, Headers: reveal(server.Headers),
		StartTimeout: server.StartTimeout, CallTimeout: server.CallTimeout, Elicitation: server.Settings.Elicitation,
	}
}

func reveal(secrets map[string]secret.Value) map[string]string {
	revealed := make(map[string]string, len(secrets))
	for name, secret := range secrets {
		revealed[name] = secret.Reveal()
	}
	return revealed
}
