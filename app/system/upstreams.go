package system

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// ResolveSecrets returns a copy of the configuration in which references to credentials
// are replaced by the credentials.
func ResolveSecrets(ctx context.Context, c *config.Config) (*config.Config, error) {
	store := secrets.New(&secrets.Options{
		AgeFile: c.Secrets.AgeFile, AgeIdentity: c.Secrets.AgeIdentity, KeyringService: c.Secrets.Keyring,
	})
	c, err := embeddingsKey(ctx, c)
	if err != nil {
		return nil, err
	}
	resolved := *c
	resolved.Servers = slices.Clone(c.Servers)
	for i := range resolved.Servers {
		server := &resolved.Servers[i]
		server.References = map[string]string{}
		for _, values := range []*map[string]secret.Value{&server.Env, &server.Headers} {
			*values = maps.Clone(*values)
			if err := lookUp(ctx, store, *values, server); err != nil {
				return nil, err
			}
		}
		if err := lookUpOAuth(ctx, store, server); err != nil {
			return nil, err
		}
	}
	HoldPrinted(&resolved)
	return &resolved, nil
}

// lookUp replaces the references in values by credentials and keeps the references in the server.
func lookUp(ctx context.Context, store *secrets.Store, values map[string]secret.Value, server *config.Server) error {
	for name, value := range values {
		if !secrets.IsReference(value.Reveal()) {
			continue
		}
		found, err := store.Lookup(ctx, value.Reveal())
		if err != nil {
			return &setup.Error{Err: fmt.Errorf("the credential %q of the server %q: %w", name, server.ID, err),
				Advice: "docs/configuration.md describes where credentials can be kept"}
		}
		printed.Hold(found.Reveal()) // also if the next one is not found
		values[name], server.References[name] = found, value.Reveal()
	}
	return nil
}

// seen returns the servers that callers of the profile see, or all servers if profile is empty.
func seen(c *config.Config, profile string) []config.Server {
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
		source, err := SignIn(server, principal, c.opts.Version,
			func(credential string) { c.opts.gate.all.Hold(credential) })
		if err != nil {
			return nil, err
		}
		made := upstreamConfig(server)
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

// upstreamConfig returns the configuration for connecting a server, without a sign-in.
func upstreamConfig(server config.Server) upstream.Config {
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
