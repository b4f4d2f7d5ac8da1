package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// measureImports imports the wrappers of a large server, each time in a sandbox
// that has not done so before. The program itself measures how long it takes.
func measureImports(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	corpus, err := b.openCorpus()
	if err != nil {
		return err
	}
	list, count, err := corpus.longest()
	if err != nil {
		return err
	}
	config, err := b.withServer(list.name, list.file)
	if err != nil {
		return err
	}
	airlock, err := b.openFace(ctx, config, &undo)
	if err != nil {
		return err
	}
	module := catalog.ModuleName(list.name)
	programs := map[string]string{
		"python": "import time\nbegan = time.perf_counter()\nimport servers." + module + "\nresult = (time.perf_counter() - began) * 1000\n",
		"node": "const began = performance.now();\nawait import('/workspace/servers/" + module + "/index.js');\n" +
			"globalThis.result = performance.now() - began;\n",
	}
	var ways []way
	for _, lang := range languages() {
		ways = append(ways, way{name: lang.id, take: func(ctx context.Context) (sample, error) {
			took := make(sample, 1)
			return took, airlock.run(ctx, lang, programs[lang.id], &took[0])
		}})
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, ways...)
	if err != nil {
		return err
	}
	for _, lang := range languages() {
		what := fmt.Sprintf("import of a server of %d %s tools, inside, %s", count, corpus.kind, lang.name)
		b.table.add(newRow(what, "ms", taken[lang.id]).aims("≤ 20"))
	}
	return nil
}

// withServer is a configuration with one server behind Airlock, whose tools are
// those of a tools/list answer: this very program, see serveTools.
func (b *bench) withServer(id string, tools []byte) (map[string]any, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.home, id+".json")
	if err := os.WriteFile(file, tools, 0o600); err != nil {
		return nil, err
	}
	config := pooled(2)
	config["mcpServers"] = map[string]any{id: map[string]any{"command": self, "args": []string{"-serve", file}}}
	return config, nil
}
