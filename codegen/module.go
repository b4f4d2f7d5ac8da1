package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// language is how one language names things.
type language struct {
	function func(tool string) string // the identifier of a tool
	alias    func(tool string) bool   // whether a tool's own name is an identifier too
	files    []string                 // stems that the templates use themselves

	title     string // the language's name
	extension string // of the file to read about a tool
	usage     string // a call, for README.md
}

// module is one server as its language sees it.
type module struct {
	id       string
	name     string // the directory below /workspace/servers
	problem  string // why the server is missing
	wrappers []*wrapper
	leftOut  []string // what of the server's list has no wrapper and why, a sentence each
}

// sharedError is what a module offers beside its functions, so that code can
// catch what they raise without another import.
const sharedError = "ToolError"

// offers reports whether a tool of the server has a name for itself.
func (m *module) offers(name string) bool {
	return slices.ContainsFunc(m.wrappers, func(w *wrapper) bool {
		return w.alias == name || slices.Contains(w.defines(), name)
	})
}

// wrapper is one tool as its language sees it.
type wrapper struct {
	tool    *catalog.Tool
	module  *module
	name    string // the function
	alias   string // the tool's name if it is a valid, different identifier, or ""
	stem    string // the file without its extension
	types   string // prefix of the names of its types
	summary string
	input   *shape
	output  *shape // nil when the tool promises no structured result
	// shortened reports that the signature is incomplete.
	shortened bool
	// optional reports that a call can omit the arguments; structured reports that the
	// tool declares a structured result.
	optional, structured bool
	warnings             []Warning // of the schemas, then of the file
	made                 *made     // from the cache: input and output are not read; or nil
}

func (w *wrapper) inputType() string  { return w.types + "Input" }
func (w *wrapper) outputType() string { return w.types + "Output" }

// takesNothing reports whether a call may leave the arguments out.
func (w *wrapper) takesNothing() bool {
	s := w.input.follow()
	return s.form == table || s.form == record && s.demand == "" &&
		!slices.ContainsFunc(s.fields, func(f field) bool { return f.required })
}

// defines returns the names that a tool's own file defines, the function first.
func (w *wrapper) defines() []string {
	names := []string{w.name, w.inputType()}
	if w.structured {
		names = append(names, w.outputType())
	}
	return names
}

// modules names all servers and tools and reads the schemas.
func (g *generator) modules(servers []catalog.Server) ([]*module, error) {
	ids := make([]string, len(servers))
	for i := range servers {
		ids[i] = servers[i].ID
	}
	names := catalog.ModuleNames(ids)
	switch {
	case slices.Contains(ids, ""):
		return nil, errors.New("a server has no ID")
	case len(names) != len(ids):
		return nil, errors.New("a server is given twice")
	}
	modules := make([]*module, len(servers))
	for i := range servers {
		m := &module{id: servers[i].ID, name: names[servers[i].ID], problem: servers[i].Problem}
		if m.problem == "" {
			m.leftOut = slices.Clone(servers[i].Warnings)
			g.wrappers(m, servers[i].Tools)
		}
		modules[i] = m
	}
	slices.SortFunc(modules, func(a, b *module) int { return cmp.Compare(a.name, b.name) })
	return modules, nil
}

// wrappers names a server's tools and reads their schemas.
func (g *generator) wrappers(m *module, tools []catalog.Tool) {
	accepted := g.accept(m, tools)
	names := make([]string, len(accepted))
	for i, tool := range accepted {
		names[i] = tool.Name
	}
	functions := distinct(names, g.function, g.alias)
	identifiers := make([]string, len(names))
	for i, name := range names {
		identifiers[i] = functions[name]
	}
	slices.Sort(identifiers)
	files := stems(identifiers, g.language.files...)
	types := g.distinctTypes(names, functions)
	for _, tool := range accepted {
		w := &wrapper{
			tool: tool, module: m, name: functions[tool.Name], types: types[tool.Name],
			summary: summary(tool.Title, tool.Description),
		}
		if w.summary == "" {
			w.summary = "No description."
		}
		w.stem = files[w.name]
		if w.name != tool.Name && g.alias(tool.Name) {
			w.alias = tool.Name
		}
		if len(words(tool.Name)) == 0 {
			text := "has the function " + w.name + ": its name holds nothing but separators"
			g.warn(tool, text)
			m.leftOut = append(m.leftOut, "tool "+nodeLiteral(tool.Name)+" "+text)
		}
		g.read(w)
		m.wrappers = append(m.wrappers, w)
	}
	slices.SortFunc(m.wrappers, func(a, b *wrapper) int { return cmp.Compare(a.name, b.name) })
}

// accept returns the tools that can be wrapped, sorted by name, and warns of
// the others.
func (g *generator) accept(m *module, tools []catalog.Tool) []*catalog.Tool {
	var accepted []*catalog.Tool
	for i := range tools {
		tool := tools[i]
		tool.ServerID = m.id
		if reason := refuseName(tool.Name); reason != "" {
			g.warn(&tool, "has no wrapper: "+reason)
			m.leftOut = append(m.leftOut, "tool "+nodeLiteral(tool.Name)+" has no wrapper: "+reason)
			continue
		}
		accepted = append(accepted, &tool)
	}
	slices.SortFunc(accepted, func(a, b *catalog.Tool) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest),
			cmp.Compare(string(a.Raw), string(b.Raw)))
	})
	return slices.CompactFunc(accepted, func(a, b *catalog.Tool) bool {
		if a.Name != b.Name {
			return false
		}
		g.warn(a, "is listed more than once: one definition is used")
		return true
	})
}

// distinctTypes gives each tool prefix of the names of its types, so
// that they differ from each other and from every function. Where several meet,
// the one whose function kept its plain name keeps its types' names too.
func (g *generator) distinctTypes(tools []string, functions map[string]string) map[string]string {
	taken := make(map[string]bool, 4*len(tools))
	plain := make(map[string]int, len(tools))
	for _, tool := range tools {
		taken[tool], taken[functions[tool]] = true, true
		if g.function(tool) == functions[tool] {
			plain[typeName(tool)]++
		}
	}
	met := func(name string) bool { return taken[name+"Input"] || taken[name+"Output"] }
	take := func(name string) string {
		taken[name+"Input"], taken[name+"Output"] = true, true
		return name
	}
	names := make(map[string]string, len(tools))
	var meeting []string
	for _, tool := range tools {
		name := typeName(tool)
		if g.function(tool) == functions[tool] && plain[name] == 1 && !met(name) {
			names[tool] = take(name)
		} else {
			meeting = append(meeting, tool)
		}
	}
	for _, tool := range meeting {
		names[tool] = take(unlike(typeName(tool), tool, met))
	}
	return names
}

// read makes the shapes of a tool's schemas, unless the cache has what is made of them.
func (g *generator) read(w *wrapper) {
	if was := g.cache.find(g.key(w), w); was != nil {
		w.made, w.optional, w.structured, w.shortened = was, was.wrapper.optional, was.wrapper.structured,
			was.wrapper.shortened
		g.warnings = append(g.warnings, was.warnings...)
		return
	}
	warned := len(g.warnings)
	w.input = g.schema(w, "input", w.tool.InputSchema)
	if w.tool.OutputSchema != nil {
		w.output = g.schema(w, "output", w.tool.OutputSchema)
	}
	w.optional, w.structured = w.takesNothing(), w.output != nil
	w.warnings = slices.Clone(g.warnings[warned:])
}

// schema reads one schema; one that cannot be used becomes any object.
func (g *generator) schema(w *wrapper, which string, raw []byte) *shape {
	s, problems, err := readSchema(raw)
	switch {
	case err != nil:
		g.warn(w.tool, fmt.Sprintf("has no types for its %s: the %s schema cannot be used: %v", which, which, err))
		return untyped()
	case len(problems) > 0:
		g.warn(w.tool, fmt.Sprintf("has types for its %s that leave something out: %s", which,
			strings.Join(problems, "; ")))
	}
	if s.form == anything && which == "input" {
		return untyped() // arguments are an object in any case
	}
	return s
}

// untyped is the shape of an object of which nothing is known.
func untyped() *shape { return &shape{form: table, elem: anyShape} }
