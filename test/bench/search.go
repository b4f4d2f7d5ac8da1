package main

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
)

// questions are what a model may search for.
func questions() []string {
	return []string{"read a file", "create an issue", "query the metrics of a cluster", "take a screenshot",
		"list storage accounts"}
}

// measureSearch searches many tools.
func measureSearch(ctx context.Context, b *bench) error {
	corpus, err := b.openCorpus()
	if err != nil {
		return err
	}
	servers, err := corpus.servers(manyTools)
	if err != nil {
		return err
	}
	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		return err
	}
	var ways []way
	for _, text := range questions() {
		ways = append(ways, way{name: text, take: func(context.Context) (sample, error) {
			return timed(func() error { snapshot.Search(catalog.Query{Text: text}); return nil })
		}})
	}
	taken, err := inTurn(ctx, b.rounds, 0, ways...)
	if err != nil {
		return err
	}
	var all sample
	for _, of := range taken {
		all = append(all, of...)
	}
	b.table.add(newRow(fmt.Sprintf("search over %d %s tools", manyTools, corpus.kind), "ms", all).aims("≤ 0.3"))
	return nil
}
