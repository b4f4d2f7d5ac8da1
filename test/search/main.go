// Command search measures how well searches find the tools that a set of queries wants:
//
//	go run ./test/search -tools FILE -queries FILE [-embeddings FILE|URL [-model NAME]] [-json]
//
// docs/catalog.md describes both files and the figures.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/secret"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "search: %v\n", err)
		os.Exit(1)
	}
}

// run makes all searches and prints the figures.
func run(ctx context.Context, args []string, out, problems io.Writer) error {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	flags.SetOutput(problems)
	toolsFile := flags.String("tools", "", "the `file` of tools, a line of JSON each")
	queriesFile := flags.String("queries", "", "the `file` of queries, a line of JSON each")
	embeddings := flags.String("embeddings", "", "measure searches by words and meaning too, with a table in a file "+
		"or the address of an OpenAI-compatible endpoint")
	model := flags.String("model", "", "the endpoint's model; its key is read from AIRLOCK_EMBEDDINGS_KEY")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tools, err := readSet(*toolsFile, readToolLines)
	if err != nil {
		return err
	}
	queries, err := readSet(*queriesFile, readQueryLines)
	if err != nil {
		return err
	}
	words, err := measureSearch(tools, queries)
	if err != nil {
		return err
	}
	measured := []measuredSearch{{"words", words}}
	if *embeddings != "" {
		fused, err := measureFused(ctx, problems, embeddingsOf(*embeddings, *model), tools, queries)
		if err != nil {
			return err
		}
		measured = append(measured, measuredSearch{"words and meaning", fused})
	}
	switch {
	case !*asJSON:
		return printQuality(out, len(tools), measured)
	case len(measured) == 1:
		return json.NewEncoder(out).Encode(words)
	}
	return json.NewEncoder(out).Encode(struct {
		quality
		Fused quality `json:"fused"`
	}{words, measured[1].quality})
}

// measuredSearch are the figures of one way to search.
type measuredSearch struct {
	way string
	quality
}

// measureFused measures searches by words and meaning.
func measureFused(ctx context.Context, problems io.Writer, wanted config.Embeddings, tools []retrievalTool,
	queries []retrievalQuery) (quality, error) {
	searcher, err := upstreams.OpenEmbeddings(ctx, &config.Config{Discovery: config.Discovery{Embeddings: wanted}}, "")
	if err != nil {
		return quality{}, err
	}
	snapshot, ids, err := snapshotOf(tools)
	if err != nil {
		return quality{}, err
	}
	if err := searcher.Learn(ctx, snapshot); err != nil {
		return quality{}, err
	}
	failed, last := 0, error(nil)
	result := measure(queries, rankTools(snapshot, ids, func(query string) []catalog.Similar {
		found, err := searcher.Similar(ctx, snapshot, query)
		if err != nil {
			failed, last = failed+1, err
		}
		return found
	}))
	if failed > 0 {
		fmt.Fprintf(problems, "search: %d of %d queries were searched by words alone: %v\n", failed, len(queries), last)
	}
	return result, nil
}

// embeddingsOf returns the configuration of a table or an endpoint. The timeout is long because
// no user waits.
func embeddingsOf(where, model string) config.Embeddings {
	if !strings.HasPrefix(where, "http://") && !strings.HasPrefix(where, "https://") {
		return config.Embeddings{Model: model, Table: where}
	}
	return config.Embeddings{Model: model, URL: where, Key: secret.New(os.Getenv("AIRLOCK_EMBEDDINGS_KEY")),
		Timeout: time.Minute}
}

// readSet reads one file of a retrieval set.
func readSet[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w (docs/catalog.md shows both files)", err)
	}
	defer file.Close()
	items, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w (each line is one JSON object; docs/catalog.md shows both files)", path,
			err)
	}
	return items, nil
}

func printQuality(out io.Writer, tools int, measured []measuredSearch) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value func(q quality) string) {
		fmt.Fprint(table, name)
		for _, m := range measured {
			fmt.Fprint(table, "\t", value(m.quality))
		}
		fmt.Fprintln(table)
	}
	if len(measured) > 1 {
		fmt.Fprintf(table, "\t%s\t%s\n", measured[0].way, measured[1].way)
	}
	row("tools", func(quality) string { return strconv.Itoa(tools) })
	row("queries", func(q quality) string { return strconv.Itoa(q.Queries) })
	for _, figure := range []struct {
		name  string
		value func(q quality) float64
	}{
		{"R@1", func(q quality) float64 { return q.Recall1 }},
		{"R@3", func(q quality) float64 { return q.Recall3 }},
		{"R@5", func(q quality) float64 { return q.Recall5 }},
		{"R@10", func(q quality) float64 { return q.Recall10 }},
		{"nDCG@5", func(q quality) float64 { return q.NDCG5 }},
		{"nDCG@10", func(q quality) float64 { return q.NDCG10 }},
		{"MRR", func(q quality) float64 { return q.MRR }},
	} {
		row(figure.name, func(q quality) string { return strconv.FormatFloat(figure.value(q), 'f', 3, 64) })
	}
	row("without an answer", func(q quality) string { return strconv.Itoa(q.Unanswered) })
	row("off-topic queries", func(q quality) string { return strconv.Itoa(q.OffTopic) })
	row("off-topic queries with an answer", func(q quality) string { return strconv.Itoa(q.OffTopicAnswered) })
	return table.Flush()
}
