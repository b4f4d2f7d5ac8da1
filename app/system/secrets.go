package system

import (
	"context"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/webhook"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// SignInSecret returns the secret of Airlock's client at the issuer.
func (s *System) SignInSecret(ctx context.Context, client config.SignIn) (secret.Value, error) {
	return s.heldSecret(ctx, "auth.signIn", client.ClientSecret)
}

// Webhooks returns the endpoints for messages about questions, with their secrets.
func (s *System) Webhooks(ctx context.Context) ([]webhook.Endpoint, error) {
	var list []webhook.Endpoint
	for _, w := range s.Config().Approvals.Webhooks {
		value, err := s.heldSecret(ctx, "approvals.webhooks."+w.Name, w.Secret)
		if err != nil {
			return nil, err
		}
		s.Hold(w.URL)
		list = append(list, webhook.Endpoint{URL: w.URL, Secret: value})
	}
	return list, nil
}

// heldSecret returns a secret of the configuration, which may be a reference, and redacts it from now on.
func (s *System) heldSecret(ctx context.Context, key string, value secret.Value) (secret.Value, error) {
	value, err := credentials.Lookup(ctx, s.Config(), key, value)
	if err != nil {
		return secret.Value{}, err
	}
	if value.Reveal() != "" {
		s.Hold(value.Reveal())
	}
	return value, nil
}

// Hold redacts a credential from everything that leaves Airlock.
func (s *System) Hold(credential string) { s.opts.redactors.All.Hold(credential) }
