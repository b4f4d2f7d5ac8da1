// Package measure has the verbs that measure searches and the cost of tools in tokens.
package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Verbs are the verbs of airlock measure.
type Verbs struct {
	Tokens measureTokensVerb `cmd:"" help:"Measure what the tools of the configuration cost a model, with Airlock and without."`
	Search measureSearchVerb `cmd:"" help:"Measure how well searches find the tools that a set of queries wants."`
}

type measureSearchVerb struct {
	Tools   string `required:"" type:"path" placeholder:"FILE" help:"The tools, a line of JSON each: id, server, name, description, inputSchema."`
	Queries string `required:"" type:"path" placeholder:"FILE" help:"The queries, a line of JSON each: id, query, gold (the ids that are wanted; none where no tool fits), any (one of them is enough)."`
	JSON    bool   `name:"json" help:"Print JSON."`

	Embeddings string `placeholder:"WHERE" help:"Measure searches by words and meaning beside those by words alone: a table in a file, the address of an OpenAI-compatible endpoint, or configuration for what search.embeddings names."`
	Model      string `help:"The endpoint's model. Its key is read from AIRLOCK_EMBEDDINGS_KEY."`
	verb.ConfigFlag
}

// Run makes all searches and prints the figures.
func (v *measureSearchVerb) Run(ctx context.Context, s *verb.Streams) error {
	tools, err := readSet(v.Tools, catalog.ReadRetrievalTools)
	if err != nil {
		return err
	}
	queries, err := readSet(v.Queries, catalog.ReadRetrievalQueries)
	if err != nil {
		return err
	}
	measured := []measuredSearch{{"words", catalog.MeasureSearch(tools, queries)}}
	if v.Embeddings != "" {
		fused, err := v.fused(ctx, s, tools, queries)
		if err != nil {
			return err
		}
		measured = append(measured, measuredSearch{"words and meaning", fused})
	}
	if !v.JSON {
		return printQuality(s.Out, len(tools), measured)
	}
	if len(measured) == 1 {
		return verb.PrintLine(s.Out, measured[0].Quality)
	}
	return verb.PrintLine(s.Out, struct {
		catalog.Quality
		Fused catalog.Quality `json:"fused"`
	}{measured[0].Quality, measured[1].Quality})
}

// measuredSearch are the figures of one way to search.
type measuredSearch struct {
	way string
	catalog.Quality
}

// fused measures searches by words and meaning.
func (v *measureSearchVerb) fused(ctx context.Context, s *verb.Streams, tools []catalog.RetrievalTool,
	queries []catalog.RetrievalQuery) (catalog.Quality, error) {
	searcher, err := v.searcher(ctx, s)
	if err != nil {
		return catalog.Quality{}, verb.Usage(err.Error(), "docs/catalog.md lists which tables and endpoints there are")
	}
	similar, err := searcher.Over(ctx, tools)
	if err != nil {
		return catalog.Quality{}, err
	}
	failed, last := 0, error(nil)
	quality := catalog.Measure(tools, queries, catalog.RankToolsWith(tools, func(query string) []catalog.Similar {
		found, err := similar(query)
		if err != nil {
			failed, last = failed+1, err
		}
		return found
	}))
	if failed > 0 {
		fmt.Fprintf(s.Err, "airlock: %d of %d questions were searched by words alone: %v\n", failed, len(queries), last)
	}
	return quality, nil
}

// searcher opens the embeddings that --embeddings names.
func (v *measureSearchVerb) searcher(ctx context.Context, s *verb.Streams) (*embedding.Searcher, error) {
	if v.Embeddings == "configuration" {
		c, err := v.Load(s.Err)
		if err != nil {
			return nil, err
		}
		searcher, err := system.OpenEmbeddings(ctx, c, "")
		if err == nil && searcher == nil {
			err = errors.New("the configuration has no search.embeddings")
		}
		return searcher, err
	}
	wanted := config.Embeddings{Model: v.Model}
	if strings.HasPrefix(v.Embeddings, "http://") || strings.HasPrefix(v.Embeddings, "https://") {
		wanted.URL, wanted.Key = v.Embeddings, secret.New(os.Getenv("AIRLOCK_EMBEDDINGS_KEY"))
		wanted.Timeout = measureTimeout
	} else {
		wanted.Table = v.Embeddings
	}
	return system.OpenEmbeddings(ctx, &config.Config{Discovery: config.Discovery{Embeddings: wanted}}, "")
}

// measureTimeout is the timeout of a request to an endpoint. It is long because no user waits.
const measureTimeout = time.Minute

// readSet reads one file of a retrieval set.
func readSet[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	const form = "each line is one JSON object; docs/catalog.md shows both files"
	file, err := os.Open(path)
	if err != nil {
		return nil, verb.Usage(err.Error(), form)
	}
	defer file.Close()
	items, err := read(file)
	if err != nil {
		return nil, verb.Usage(fmt.Sprintf("reading %q: %v", path, err), form)
	}
	return items, nil
}

func printQuality(out io.Writer, tools int, measured []measuredSearch) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value func(q catalog.Quality) string) {
		fmt.Fprint(table, name)
		for _, m := range measured {
			fmt.Fprint(table, "\t", value(m.Quality))
		}
		fmt.Fprintln(table)
	}
	if len(measured) > 1 {
		fmt.Fprintf(table, "\t%s\t%s\n", measured[0].way, measured[1].way)
	}
	row("tools", func(catalog.Quality) string { return strconv.Itoa(tools) })
	row("queries", func(q catalog.Quality) string { return strconv.Itoa(q.Queries) })
	for _, figure := range []struct {
		name  string
		value func(q catalog.Quality) float64
	}{
		{"R@1", func(q catalog.Quality) float64 { return q.Recall1 }},
		{"R@3", func(q catalog.Quality) float64 { return q.Recall3 }},
		{"R@5", func(q catalog.Quality) float64 { return q.Recall5 }},
		{"R@10", func(q catalog.Quality) float64 { return q.Recall10 }},
		{"nDCG@5", func(q catalog.Quality) float64 { return q.NDCG5 }},
		{"nDCG@10", func(q catalog.Quality) float64 { return q.NDCG10 }},
		{"MRR", func(q catalog.Quality) float64 { return q.MRR }},
	} {
		row(figure.name, func(q catalog.Quality) string { return strconv.FormatFloat(figure.value(q), 'f', 3, 64) })
	}
	row("without an answer", func(q catalog.Quality) string { return strconv.Itoa(q.Unanswered) })
	row("off-topic queries", func(q catalog.Quality) string { return strconv.Itoa(q.OffTopic) })
	row("off-topic queries with an answer", func(q catalog.Quality) string { return strconv.Itoa(q.OffTopicAnswered) })
	return table.Flush()
}
