package main

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/codegen"
)

// manyTools is how many tools an operator with many servers has.
const manyTools = 1500

// measureWrappers generates the wrappers of many tools.
func measureWrappers(ctx context.Context, b *bench) error {
	corpus, err := b.openCorpus()
	if err != nil {
		return err
	}
	servers, err := corpus.servers(manyTools)
	if err != nil {
		return err
	}
	taken, err := inTurn(ctx, max(1, b.rounds/seldom), 0,
		way{name: "generate", take: func(context.Context) (sample, error) {
			return timed(func() error {
				for _, language := range []codegen.Language{codegen.Python, codegen.Node} {
					if _, err := codegen.Generate(servers, language); err != nil {
						return err
					}
				}
				return nil
			})
		}})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("wrappers for %d %s tools, both languages", manyTools, corpus.kind)
	b.table.add(newRow(what, "ms", taken["generate"]).aims("≤ 300"))
	return nil
}
