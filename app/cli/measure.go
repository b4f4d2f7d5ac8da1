package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/airlock-mcp/airlock/catalog"
)

type measureVerbs struct {
	Search measureSearchVerb `cmd:"" help:"Measure how well searches find the tools that a set of queries wants."`
}

type measureSearchVerb struct {
	Tools   string `required:"" type:"path" placeholder:"FILE" help:"The tools, a line of JSON each: id, server, name, description, inputSchema."`
	Queries string `required:"" type:"path" placeholder:"FILE" help:"The queries, a line of JSON each: id, query, gold (the ids that are wanted; none where no tool fits), any (one of them is enough)."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run asks all queries and prints the figures.
func (v *measureSearchVerb) Run(_ context.Context, s *streams) error {
	tools, err := readSet(v.Tools, catalog.ReadRetrievalTools)
	if err != nil {
		return err
	}
	queries, err := readSet(v.Queries, catalog.ReadRetrievalQueries)
	if err != nil {
		return err
	}
	quality := catalog.MeasureSearch(tools, queries)
	if v.JSON {
		return printLine(s.out, quality)
	}
	return printQuality(s.out, len(tools), quality)
}

// readSet reads one file of a retrieval set.
func readSet[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	const form = "each line is one JSON object; docs/catalog.md shows both files"
	file, err := os.Open(path)
	if err != nil {
		return nil, &usageError{err.Error(), form}
	}
	defer file.Close()
	items, err := read(file)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("reading %q: %v", path, err), form}
	}
	return items, nil
}

func printQuality(out io.Writer, tools int, q catalog.Quality) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "tools\t%d\nqueries\t%d\n", tools, q.Queries)
	for _, figure := range []struct {
		name  string
		value float64
	}{
		{"R@1", q.Recall1}, {"R@3", q.Recall3}, {"R@5", q.Recall5}, {"R@10", q.Recall10},
		{"nDCG@5", q.NDCG5}, {"nDCG@10", q.NDCG10}, {"MRR", q.MRR},
	} {
		fmt.Fprintf(table, "%s\t%.3f\n", figure.name, figure.value)
	}
	fmt.Fprintf(table, "without an answer\t%d\n", q.Unanswered)
	fmt.Fprintf(table, "off-topic queries\t%d\noff-topic queries with an answer\t%d\n", q.OffTopic, q.OffTopicAnswered)
	return table.Flush()
}
