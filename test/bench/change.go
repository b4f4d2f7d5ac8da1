package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// measureChange measures what one changed tool among many costs until code can use
// it, the first search afterwards, and the memory of snapshots with their index.
func measureChange(ctx context.Context, b *bench) error {
	corpus, err := b.openCorpus()
	if err != nil {
		return err
	}
	servers, err := corpus.servers(manyTools)
	if err != nil {
		return err
	}
	var described, made codegen.Cache
	before, err := prepareSnapshot(nil, servers, &described)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "airlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := publishBoth(ctx, before, &made, dir); err != nil {
		return err
	}
	var first sample
	changes := 0
	taken, err := inTurn(ctx, max(1, b.rounds/seldom), 0,
		way{name: "change", take: func(context.Context) (sample, error) {
			changes++
			changed, err := changeOne(servers, changes)
			if err != nil {
				return nil, err
			}
			var after *catalog.Snapshot
			took, err := timed(func() error {
				if after, err = prepareSnapshot(before, changed, &described); err != nil {
					return err
				}
				return publishBoth(ctx, after, &made, dir)
			})
			if err != nil {
				return nil, err
			}
			before = after
			searched, err := timed(func() error { after.Search(catalog.Query{Text: "create an issue"}); return nil })
			first = append(first, searched...)
			return took, err
		}})
	if err != nil {
		return err
	}
	b.table.add(
		newRow(fmt.Sprintf("one changed tool of %d %s ones, until wrappers are published and the index is there",
			manyTools, corpus.kind), "ms", taken["change"]).aims("≤ 1000"),
		newRow("the first search after it", "ms", first).aims("≤ 5"))
	for _, tools := range []int{manyTools, 10_000} {
		heap, err := heapOf(corpus, tools)
		if err != nil {
			return err
		}
		b.table.add(newRow(fmt.Sprintf("heap of a snapshot of %d tools with definitions and index", tools), "MB",
			sample{heap}))
	}
	return nil
}

// prepareSnapshot makes a snapshot as it is published: searches find everything ready.
func prepareSnapshot(before *catalog.Snapshot, servers []catalog.Server, described *codegen.Cache) (*catalog.Snapshot,
	error) {
	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		return nil, err
	}
	snapshot.Prepare(before, func(servers []catalog.Server, language string) map[catalog.ToolRef]catalog.Usage {
		usages, _ := described.Usages(servers, codegen.Language(language))
		return usages
	}, string(codegen.Python), string(codegen.Node))
	return snapshot, nil
}

// publishBoth puts the wrappers of both languages where sandboxes read them.
func publishBoth(ctx context.Context, snapshot *catalog.Snapshot, made *codegen.Cache, dir string) error {
	for _, language := range []codegen.Language{codegen.Python, codegen.Node} {
		tree, err := made.Generate(snapshot.Shown(), language)
		if err != nil {
			return err
		}
		lease, err := codegen.Publish(ctx, dir, tree)
		if err != nil {
			return err
		}
		if err := lease.Close(); err != nil {
			return err
		}
	}
	return nil
}

// changeOne returns servers of which one tool has another description.
func changeOne(servers []catalog.Server, n int) ([]catalog.Server, error) {
	changed := slices.Clone(servers)
	first := &changed[0]
	first.Tools = slices.Clone(first.Tools)
	var definition map[string]json.RawMessage
	if err := json.Unmarshal(first.Tools[0].Raw, &definition); err != nil {
		return nil, err
	}
	definition["description"] = fmt.Appendf(nil, `"Does something else, change %d."`, n)
	raw, err := json.Marshal(definition)
	if err != nil {
		return nil, err
	}
	first.Tools[0], err = catalog.ParseTool(first.ID, raw)
	return changed, err
}

// heapOf is how many megabytes a snapshot of so many tools keeps.
func heapOf(corpus *corpus, tools int) (float64, error) {
	before := heapInUse()
	servers, err := corpus.servers(tools)
	if err != nil {
		return 0, err
	}
	snapshot, err := prepareSnapshot(nil, servers, &codegen.Cache{})
	if err != nil {
		return 0, err
	}
	after := heapInUse()
	runtime.KeepAlive(snapshot)
	return float64(after-before) / 1e6, nil
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
