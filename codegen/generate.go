package codegen

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
)

// Language is what code in a sandbox is written in.
type Language string

// The languages. There is no default: an unknown language is an error.
const (
	Python Language = "python"
	Node   Language = "node"
)

// Tree is the content of /workspace/servers for one language.
type Tree struct {
	Files    []File // sorted by path
	Digest   string // "sha256:" and hex, over all paths and contents
	Warnings []Warning
	Tools    int // that got a wrapper
	Servers  int // that got a module, the missing ones included
}

// File is one generated file.
type File struct {
	Path string // relative to /workspace/servers, with slashes
	Data []byte
}

// Warning reports something missing in a tree: a refused tool, types that could not be
// generated, or a shortened signature.
type Warning struct {
	ServerID string
	Tool     string // its own name
	Text     string // what and why, in one sentence without the names
}

// Generate returns the wrappers of all tools for one language. It is a pure function: the
// tree depends on the servers and tools, but not on their order.
//
// A tool that cannot be wrapped is refused with a warning. A tool whose schema cannot be
// used gets a wrapper without types, and a warning. The module of a server with a Problem
// reports it when it is used. Generate returns an error for a duplicate server, a server
// without an ID, or an unknown language.
func Generate(servers []catalog.Server, lang Language) (*Tree, error) {
	return generate(servers, lang, nil)
}

func generate(servers []catalog.Server, lang Language, cache *Cache) (*Tree, error) {
	g, modules, err := prepare(servers, lang, &generator{cache: cache})
	if err != nil {
		return nil, fmt.Errorf("generating wrappers: %w", err)
	}
	if lang == Python {
		g.python(modules)
	} else {
		g.node(modules)
	}
	g.index(modules)
	return g.tree(modules), nil
}

// prepare returns a generator for a language with the modules of the servers.
func prepare(servers []catalog.Server, lang Language, g *generator) (*generator, []*module, error) {
	g.cache.begin()
	switch lang {
	case Python:
		g.language = pythonLanguage
	case Node:
		g.language = nodeLanguage
	default:
		return nil, nil, fmt.Errorf("unknown language %q", lang)
	}
	modules, err := g.modules(servers)
	return g, modules, err
}

// generator collects what one call of Generate makes.
type generator struct {
	language
	cache    *Cache // nil makes everything
	usages   bool   // usages are wanted, not files
	files    []File
	warnings []Warning
}

func (g *generator) add(path string, data []byte) {
	g.files = append(g.files, File{Path: path, Data: data})
}

// addWrapper adds the file of a tool, and remembers it with all warnings about it.
func (g *generator) addWrapper(w *wrapper, path string, write func(*wrapper) []byte) {
	if w.made != nil {
		g.add(path, w.made.file)
		return
	}
	warned := len(g.warnings)
	data := write(w)
	g.add(path, data)
	w.warnings = append(w.warnings, g.warnings[warned:]...)
	g.cache.keep(g.key(w), w, made{file: data, warnings: w.warnings})
}

func (g *generator) key(w *wrapper) cacheKey {
	return cacheKey{usage: g.usages, language: g.title, server: w.module.id, tool: w.tool.Name}
}

func (g *generator) warn(tool *catalog.Tool, text string) {
	g.warnings = append(g.warnings, Warning{ServerID: tool.ServerID, Tool: tool.Name, Text: text})
}

func (g *generator) tree(modules []*module) *Tree {
	slices.SortFunc(g.files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortStableFunc(g.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(a.Tool, b.Tool))
	})
	t := &Tree{Files: g.files, Digest: digest(g.files), Warnings: g.warnings, Servers: len(modules)}
	for _, m := range modules {
		t.Tools += len(m.wrappers)
	}
	return t
}

// digest covers paths and contents, each with its length before it.
func digest(files []File) string {
	sum := sha256.New()
	var length [8]byte
	write := func(part []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		sum.Write(length[:])
		sum.Write(part)
	}
	for _, f := range files {
		write([]byte(f.Path))
		write(f.Data)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
