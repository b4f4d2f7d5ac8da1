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
	var ways []way
	for _, form := range importForms(module) {
		ways = append(ways, way{name: form.what + form.lang.id, take: func(ctx context.Context) (sample, error) {
			took := make(sample, 1)
			return took, airlock.run(ctx, form.lang, form.program, &took[0])
		}})
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, ways...)
	if err != nil {
		return err
	}
	for _, form := range importForms(module) {
		what := fmt.Sprintf("%s %d %s tools, inside, %s", form.what, count, corpus.kind, form.lang.name)
		b.table.add(newRow(what, "ms", taken[form.what+form.lang.id]).aims("≤ 20"))
	}
	return nil
}

// importForm is one way in which a program imports wrappers. The program's
// result is how long that takes, in milliseconds.
type importForm struct {
	what    string
	lang    language
	program string
}

// importForms are the ways to import the wrappers of a server's module.
func importForms(module string) []importForm {
	var forms []importForm
	for _, lang := range languages() {
		began, ended := "import time\nbegan = time.perf_counter()\n",
			"\nresult = (time.perf_counter() - began) * 1000\n"
		statements := [...]string{"import servers." + module, "from servers." + module + " import *"}
		if lang.id == "node" {
			began, ended = "const began = performance.now();\n", "\nglobalThis.result = performance.now() - began;\n"
			path := "await import('/workspace/servers/" + module + "/index.js');"
			statements = [...]string{path, "Object.assign(globalThis, { ...(" + path[:len(path)-1] + ")});"}
		}
		for i, what := range [...]string{"import of a server of", "import of all names of a server of"} {
			forms = append(forms, importForm{what, lang, began + statements[i] + ended})
		}
	}
	return forms
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
