package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// Limits in bytes on the line that shows how to call a tool.
const (
	maxUsage    = 240 // arguments and result
	maxUsageKey = 60
	maxUsageSet = 60 // the values of an enumeration
	maxUsageOut = 5  // keys of a result
)

// Usages returns, by tool, how code in a language imports and calls the wrappers
// that Generate writes: one line to import, one with the types in short. A tool
// without a wrapper is not in it, nor is one of a server that is missing.
func Usages(servers []catalog.Server, lang Language) (map[catalog.ToolRef]catalog.Usage, error) {
	return usages(servers, lang, nil)
}

func usages(servers []catalog.Server, lang Language, cache *Cache) (map[catalog.ToolRef]catalog.Usage, error) {
	g, modules, err := prepare(servers, lang, &generator{cache: cache, usages: true})
	if err != nil {
		return nil, fmt.Errorf("describing wrappers: %w", err)
	}
	names := pythonUsage
	if lang == Node {
		names = nodeUsage
	}
	usages := map[catalog.ToolRef]catalog.Usage{}
	for _, m := range modules {
		for _, w := range m.wrappers {
			ref := catalog.ToolRef{ServerID: m.id, ToolName: w.tool.Name}
			if w.made != nil {
				usages[ref] = w.made.usage
				continue
			}
			usages[ref] = catalog.Usage{Import: fmt.Sprintf(names.importing, w.name, m.name),
				Signature: names.signature(w)}
			g.cache.keep(g.key(w), w, made{usage: usages[ref]})
		}
	}
	return usages, nil
}

// usageNames is how one language writes an import and names types in short.
type usageNames struct {
	importing                                 string // of a function [1] from a module [2]
	text, integer, number, boolean, null, any string
	list                                      func(elem string) string
}

var (
	pythonUsage = usageNames{
		importing: "from servers.%[2]s import %[1]s",
		text:      "str", integer: "int", number: "float", boolean: "bool", null: "None", any: "Any",
		list: func(elem string) string { return "list[" + elem + "]" },
	}
	nodeUsage = usageNames{
		importing: `import { %[1]s } from "./servers/%[2]s/index.js";`,
		text:      "string", integer: "number", number: "number", boolean: "boolean", null: "null", any: "unknown",
		list: func(elem string) string { return elem + "[]" },
	}
)

// signature writes a call with the types of its arguments, the required ones
// first, and the keys of its result.
func (u usageNames) signature(w *wrapper) string {
	call := "await " + w.name + "("
	in := w.input.follow()
	switch {
	case in.form == record && len(in.fields) > 0:
		call += u.arguments(in.fields)
	case in.form != record:
		call += "{…}"
	}
	call += ")"
	if w.output == nil {
		return call
	}
	return call + " -> " + u.result(w.output.follow())
}

// arguments lists fields as far as there is room.
func (u usageNames) arguments(fields []field) string {
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(a, b field) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	var parts []string
	size := 0
	for _, f := range fields {
		mark := "?: "
		if f.required {
			mark = ": "
		}
		part := usageKey(f.key) + mark + u.kind(f.shape, 2)
		if size += len(part) + 2; size > maxUsage || len(f.key) > maxUsageKey {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, part)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// result names the first keys of a record, or the type of what else comes back.
func (u usageNames) result(s *shape) string {
	if s.form != record || len(s.fields) == 0 {
		return u.kind(s, 2)
	}
	var keys []string
	for i, f := range s.fields {
		if i == maxUsageOut || len(f.key) > maxUsageKey {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, usageKey(f.key))
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func usageKey(key string) string {
	if isIdentifier(key, nil) {
		return key
	}
	return nodeLiteral(key)
}

// kind names a type in short, down to a depth.
func (u usageNames) kind(s *shape, depth int) string {
	switch s = s.follow(); s.form {
	case text:
		return u.text
	case integer:
		return u.integer
	case number:
		return u.number
	case boolean:
		return u.boolean
	case null:
		return u.null
	case array, tuple:
		if s.elem == nil || depth == 0 {
			return u.list(u.any)
		}
		return u.list(u.kind(s.elem, depth-1))
	case record, table:
		return "{…}"
	case literalValue:
		return u.literal(s)
	case union:
		return u.union(s, depth)
	}
	return u.any
}

func (u usageNames) literal(s *shape) string {
	if written := nodeValue(s.value); len(written) <= maxUsageSet {
		return written
	}
	return u.kind(kindShape(s.value.kind), 0)
}

// union writes the alternatives as far as there is room.
func (u usageNames) union(s *shape, depth int) string {
	if depth == 0 {
		return u.any
	}
	written := ""
	for _, item := range s.items {
		kind := u.kind(item, depth-1)
		if written != "" && len(written)+len(kind) > maxUsageSet {
			return written + "|…"
		}
		if written != "" {
			kind = "|" + kind
		}
		written += kind
	}
	return written
}
