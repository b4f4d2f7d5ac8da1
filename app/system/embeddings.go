package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/webhook"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/secrets"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// OpenEmbeddings returns the searcher that search.embeddings configures, or nil if it is not set.
// Vectors are cached in directory for the next start, unless it is empty. OpenEmbeddings does not
// connect to the endpoint.
func OpenEmbeddings(ctx context.Context, c *config.Config, directory string) (*embedding.Searcher, error) {
	wanted := c.Embeddings
	switch {
	case wanted.Table != "":
		table, err := embedding.OpenTable(wanted.Table)
		if err != nil {
			return nil, &setup.Error{Err: err, Advice: "docs/catalog.md lists which tables there are"}
		}
		return embedding.New(table, "", ""), nil
	case wanted.URL == "":
		return nil, nil
	}
	key, err := embeddingsKey(ctx, c)
	if err != nil {
		return nil, err
	}
	endpoint, err := embedding.NewEndpoint(embedding.EndpointConfig{
		URL: wanted.URL, Model: wanted.Model, Key: key.Embeddings.Key,
		Dimensions: wanted.Dimensions, Timeout: wanted.Timeout, Batch: wanted.Batch,
	})
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("search.embeddings: %w", err),
			Advice: "docs/configuration.md lists its keys"}
	}
	return embedding.New(endpoint, directory, endpoint.Name()), nil
}

// embeddingsKey returns the configuration with the key that it names by reference.
func embeddingsKey(ctx context.Context, c *config.Config) (*config.Config, error) {
	if !secrets.IsReference(c.Embeddings.Key.Reveal()) {
		return c, nil
	}
	found, err := keptSecrets(c).Lookup(ctx, c.Embeddings.Key.Reveal())
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("the credential of search.embeddings: %w", err),
			Advice: "docs/configuration.md describes where credentials can be kept"}
	}
	printed.Hold(found.Reveal())
	resolved := *c
	resolved.Embeddings.Key = found
	return &resolved, nil
}

// keptSecrets returns the stores of credentials of a configuration.
func keptSecrets(c *config.Config) *secrets.Store {
	return secrets.New(&secrets.Options{AgeFile: c.Secrets.AgeFile, AgeIdentity: c.Secrets.AgeIdentity,
		KeyringService: c.Secrets.Keyring})
}

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
	if secrets.IsReference(value.Reveal()) {
		var err error
		if value, err = keptSecrets(s.Config()).Lookup(ctx, value.Reveal()); err != nil {
			return secret.Value{}, fmt.Errorf("the secret of %s: %w", key, err)
		}
	}
	if value.Reveal() != "" {
		s.Hold(value.Reveal())
	}
	return value, nil
}

// Hold redacts a credential from everything that leaves Airlock.
func (s *System) Hold(credential string) { s.opts.gate.all.Hold(credential) }

// openEmbeddings prepares semantic search, if embeddings are configured.
func (c *Catalog) openEmbeddings(ctx context.Context) error {
	if !c.opts.Serving {
		return nil
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	c.meaning, err = OpenEmbeddings(ctx, c.config.Load(), store.Embeddings(home))
	return err
}

// relearnAfter is the delay before an endpoint that failed is asked again.
const relearnAfter = time.Minute

// learnSoon requests, without blocking, that learnTools embeds the current tools.
func (c *Catalog) learnSoon() {
	select {
	case c.learn <- struct{}{}:
	default:
	}
}

// learnTools computes the vectors of the current tools whenever they have changed, until ctx ends.
// Searches do not wait for it; until it is done they match words only.
func (c *Catalog) learnTools(ctx context.Context) {
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.learn:
		}
		err := c.meaning.Learn(ctx, c.snapshot.Load())
		if err == nil || ctx.Err() != nil {
			told = false
			continue
		}
		if !told {
			told = true
			c.opts.Notify(Notice{
				Text: fmt.Sprintf("searches find tools by words alone: %v", err),
				Hint: "check search.embeddings; Airlock asks again every minute",
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relearnAfter):
			c.learnSoon()
		}
	}
}

// Similar returns the tools whose meaning is near to a question. If the embeddings are not
// available, it returns a sentence about that instead. If none are configured, both results are
// empty.
func (s *System) Similar(ctx context.Context, snapshot *catalog.Snapshot, question string) ([]catalog.Similar, string) {
	meaning := s.catalog.meaning
	if meaning == nil {
		return nil, ""
	}
	// Credentials that Airlock knows must not be sent to the endpoint.
	similar, err := meaning.Similar(ctx, snapshot, s.opts.gate.definitions.Text(question))
	if err != nil {
		s.opts.Logger.DebugContext(ctx, "a search goes without embeddings", slog.Any(telemetry.KeyError, err))
		return nil, "Searched by words alone: the embeddings are not available."
	}
	return similar, ""
}

// recordEgress writes an audit record of the endpoints, other than servers, that texts are sent to.
func (s *System) recordEgress(ctx context.Context) error {
	wanted := s.config.Embeddings
	if !s.opts.Serving || wanted.URL == "" {
		return nil
	}
	return s.log.Append(ctx, audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: Principal()},
		Detail: fmt.Sprintf("search questions and the texts of tools are sent to %s for embeddings by %s", wanted.URL,
			wanted.Model),
	})
}
