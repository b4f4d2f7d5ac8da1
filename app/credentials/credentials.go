// Package credentials finds the credentials of a configuration and has them redacted. It replaces references by
// the credentials that they name, and holds every credential back from the output of commands.
package credentials

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Resolve returns a copy of the configuration in which references to credentials are replaced by the
// credentials. Printed redacts them from then on. If a reference names nothing, the error has a hint.
func Resolve(ctx context.Context, c *config.Config) (*config.Config, error) {
	store := Store(c)
	key, err := Lookup(ctx, c, "search.embeddings", c.Embeddings.Key)
	if err != nil {
		return nil, err
	}
	resolved := *c
	resolved.Embeddings.Key = key
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

// lookUpOAuth resolves the references in the operator's settings for signing in. It changes a copy
// of the settings, which it assigns to the server.
func lookUpOAuth(ctx context.Context, store *secrets.Store, server *config.Server) error {
	if server.Settings.OAuth == nil {
		return nil
	}
	own := *server.Settings.OAuth
	server.Settings.OAuth = &own
	places := own.Secrets()
	values := map[string]secret.Value{}
	for name, place := range places {
		values[name] = *place
	}
	if err := lookUp(ctx, store, values, server); err != nil {
		return err
	}
	for name, place := range places {
		*place = values[name]
	}
	return nil
}

// Lookup returns the credential that value refers to, or value itself if it is not a reference. key names it in an
// error. Printed redacts the credential from then on.
func Lookup(ctx context.Context, c *config.Config, key string, value secret.Value) (secret.Value, error) {
	if !secrets.IsReference(value.Reveal()) {
		return value, nil
	}
	found, err := Store(c).Lookup(ctx, value.Reveal())
	if err != nil {
		return secret.Value{}, &setup.Error{Err: fmt.Errorf("the credential of %s: %w", key, err),
			Advice: "docs/configuration.md describes where credentials can be kept"}
	}
	printed.Hold(found.Reveal())
	return found, nil
}

// Store returns the stores of credentials of a configuration.
func Store(c *config.Config) *secrets.Store {
	return secrets.New(&secrets.Options{AgeFile: c.Secrets.AgeFile, AgeIdentity: c.Secrets.AgeIdentity,
		KeyringService: c.Secrets.Keyring})
}
