package upstreams

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
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
	key, err := credentials.Lookup(ctx, c, "search.embeddings", wanted.Key)
	if err != nil {
		return nil, err
	}
	endpoint, err := embedding.NewEndpoint(embedding.EndpointConfig{
		URL: wanted.URL, Model: wanted.Model, Key: key,
		Dimensions: wanted.Dimensions, Timeout: wanted.Timeout, Batch: wanted.Batch,
	})
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("search.embeddings: %w", err),
			Advice: "docs/configuration.md lists its keys"}
	}
	return embedding.New(endpoint, directory, endpoint.Name()), nil
}

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
func (c *Catalog) Similar(ctx context.Context, snapshot *catalog.Snapshot, question string) ([]catalog.Similar,
	string) {
	if c.meaning == nil {
		return nil, ""
	}
	// Credentials that Airlock knows must not be sent to the endpoint.
	similar, err := c.meaning.Similar(ctx, snapshot, c.opts.Redactors.Definitions.Text(question))
	if err != nil {
		c.opts.Logger.DebugContext(ctx, "a search goes without embeddings", slog.Any(telemetry.KeyError, err))
		return nil, "Searched by words alone: the embeddings are not available."
	}
	return similar, ""
}

// Similar implements code.Searcher with the embeddings of the tools, see Catalog.Similar.
func (s *Servers) Similar(ctx context.Context, snapshot *catalog.Snapshot,
	question string) ([]catalog.Similar, string) {
	return s.catalog.Similar(ctx, snapshot, question)
}

// RecordEmbeddings writes an audit record of the endpoints, other than servers, that texts are sent to.
func RecordEmbeddings(ctx context.Context, c *config.Config, log *audit.Log) error {
	wanted := c.Embeddings
	if wanted.URL == "" {
		return nil
	}
	return log.Append(ctx, audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: setup.Principal()},
		Detail: fmt.Sprintf("search questions and the texts of tools are sent to %s for embeddings by %s", wanted.URL,
			wanted.Model),
	})
}
