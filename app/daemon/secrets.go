package daemon

import (
	"context"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/webhook"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// signInSecret returns the secret of Airlock's client at the issuer.
func (d *Daemon) signInSecret(ctx context.Context, client config.SignIn) (secret.Value, error) {
	return d.heldSecret(ctx, "auth.signIn", client.ClientSecret)
}

// webhooks returns the endpoints for messages about questions, with their secrets.
func (d *Daemon) webhooks(ctx context.Context) ([]webhook.Endpoint, error) {
	var list []webhook.Endpoint
	for _, w := range d.opts.System.Config().Approvals.Webhooks {
		value, err := d.heldSecret(ctx, "approvals.webhooks."+w.Name, w.Secret)
		if err != nil {
			return nil, err
		}
		d.opts.System.Hold(w.URL)
		list = append(list, webhook.Endpoint{URL: w.URL, Secret: value})
	}
	return list, nil
}

// heldSecret returns a secret of the configuration, which may be a reference, and redacts it from now on.
func (d *Daemon) heldSecret(ctx context.Context, key string, value secret.Value) (secret.Value, error) {
	value, err := credentials.Lookup(ctx, d.opts.System.Config(), key, value)
	if err != nil {
		return secret.Value{}, err
	}
	if value.Reveal() != "" {
		d.opts.System.Hold(value.Reveal())
	}
	return value, nil
}
