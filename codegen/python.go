package codegen

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pythonLanguage names things for Python 3.11 or later.
var pythonLanguage = language{
	title:    "Python",
	function: pythonName,
	alias: func(tool string) bool {
		// Names like __path__ mean something to the import system.
		return isIdentifier(tool, pythonReserved) && !strings.HasPrefix(tool, "__")
	},
	files:     []string{"__init__"},
	extension: ".py",
	usage: "    from servers.some_server import some_function\n" +
		"    result = await some_function({\"name\": \"value\"})\n    result.data\n",
}

// pythonServers is the code of the package servers, below its docstring.
//
//go:embed template/servers.py
var pythonServers string

// python writes the package servers: a package for each server, a file for
// each tool. A package imports none of its files before they are asked for.
func (g *generator) python(modules []*module) {
	g.pythonRoot(modules)
	for _, m := range modules {
		if m.problem != "" {
			g.pythonMissing(m)
			continue
		}
		for _, w := range m.wrappers {
			g.addWrapper(w, m.name+"/"+w.stem+".py", g.pythonWrapper)
		}
		g.pythonPackage(m)
	}
}

func (g *generator) pythonRoot(modules []*module) {
	var doc strings.Builder
	doc.WriteString("The tools of all servers, as async functions of one dict, or of keyword arguments.\n")
	for _, m := range modules {
		doc.WriteString("\nservers." + m.name + ": " + describe(m))
	}
	if len(modules) == 0 {
		doc.WriteString("\nNo server is configured.")
	}
	b := docstring(nil, "", doc.String())
	b = append(b, "\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n"...)
	for _, m := range modules {
		b = append(b, "    from . import "+m.name+" as "+m.name+"\n"...)
	}
	if len(modules) == 0 {
		b = append(b, "    pass\n"...)
	}
	b = append(b, "\n__all__ = ["...)
	for _, m := range modules {
		b = append(b, "\n    \""+m.name+"\","...)
	}
	if len(modules) > 0 {
		b = append(b, '\n')
	}
	b = append(b, "]\n"...)
	g.add("__init__.py", append(b, pythonServers...))
}

func (g *generator) pythonMissing(m *module) {
	b := docstring(nil, "", unavailable(m))
	b = append(b, "\nfrom servers import MissingServer as _MissingServer\n\n__all__ = []\n\n"...)
	b = append(b, "_MissingServer.__attach__(__name__, "+pythonLiteral(unavailable(m))+")\n"...)
	g.add(m.name+"/__init__.py", b)
}

// pythonPackage writes a server's package: a line for each function, and its module. The
// imports are for type checkers and never run.
func (g *generator) pythonPackage(m *module) {
	var doc strings.Builder
	doc.WriteString(describe(m) + ", as async functions of one dict, or of keyword arguments.\n")
	for _, w := range m.wrappers {
		doc.WriteString("\n" + w.name + ": " + w.summary)
	}
	for _, line := range m.leftOutLines() {
		doc.WriteString("\nLeft out: " + line)
	}
	b := docstring(nil, "", doc.String())
	b = append(b, "\nfrom servers import Server as _Server\n\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n"...)
	for _, w := range m.wrappers {
		b = append(b, "    from ."+w.stem+" import "+pythonImports(w)+"\n"...)
	}
	if !m.offers(sharedError) {
		b = append(b, "    from client.mcp_client import ToolError as ToolError\n"...)
	}
	if b[len(b)-2] == ':' {
		b = append(b, "    pass\n"...)
	}
	b = append(b, "\n_Server.__attach__(\n    __name__,\n    {\n"...)
	for _, w := range m.wrappers {
		b = append(b, "        \""+w.stem+"\": \""+strings.Join(w.defines(), " ")+"\",\n"...)
	}
	b = append(b, "    },\n    {"...)
	for _, w := range m.wrappers {
		if w.alias != "" {
			b = append(b, "\n        \""+w.alias+"\": \""+w.name+"\","...)
		}
	}
	if b[len(b)-1] == ',' {
		b = append(b, "\n    "...)
	}
	g.add(m.name+"/__init__.py", append(b, "},\n)\n"...))
}

// pythonImports lists what a type checker shall find in the package.
func pythonImports(w *wrapper) string {
	var names []string
	for _, name := range w.defines() {
		names = append(names, name+" as "+name)
	}
	if w.alias != "" && w.alias != "TYPE_CHECKING" && w.alias != "_Server" {
		names = append(names, w.name+" as "+w.alias)
	}
	return strings.Join(names, ", ")
}

// pythonWrapper writes the file of one tool.
func (g *generator) pythonWrapper(w *wrapper) []byte {
	uses := map[string]bool{}
	types := g.pythonSignature(w, uses)
	uses["Any"] = true
	arguments, result := "arguments: "+w.inputType(), "ToolResult"
	if s := w.input.follow(); s.form == record && isOpen(s) {
		arguments += " | dict[str, Any]"
	}
	if w.optional {
		arguments += " = {}"
	} else {
		arguments += " | None = None" // the keywords hold what is required
	}
	if w.output != nil {
		result = `"ToolResult[` + w.outputType() + `]"`
	}
	b := docstring(nil, "", fmt.Sprintf("Tool %s of server %s, wrapped by Airlock.", nodeLiteral(w.tool.Name),
		nodeLiteral(w.module.id)))
	b = append(b, "\nfrom typing import "+strings.Join(slices.Sorted(maps.Keys(uses)), ", ")+"\n"...)
	b = append(b, "\nfrom client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke\n\n"...)
	b = append(b, "SERVER_ID = "+pythonLiteral(w.module.id)+"\n"...)
	b = append(b, "TOOL_NAME = "+pythonLiteral(w.tool.Name)+"\n"...)
	b = append(b, "DEFINITION_DIGEST = "+pythonLiteral(w.tool.Digest)+"\n\n\n"...)
	b = append(b, types...)
	b = append(b, "async def "+w.name+"("+arguments+", /, **named: Any) -> "+result+":\n"...)
	b = docstring(b, "    ", w.documentation(`await client.catalog.get_tool_definition(%s, %s)`))
	return append(b, "    return await _invoke(SERVER_ID, TOOL_NAME, arguments, \""+w.name+"\", named, "+w.inputType()+
		")\n"...)
}

// pythonSignature writes the types of a tool in as much detail as there is room for.
func (g *generator) pythonSignature(w *wrapper, uses map[string]bool) []byte {
	var out []byte
	level, ok := shortest(func(d detail) bool {
		clear(uses)
		p := &pythonTypes{declarations: declare(w.input, w.inputType(), d), done: map[*declaration]bool{}, given: true,
			uses: uses}
		if !p.write() {
			return false
		}
		if w.output != nil {
			given := p.out
			p = &pythonTypes{declarations: declare(w.output, w.outputType(), d), done: map[*declaration]bool{},
				uses: uses, out: given}
			if !p.write() {
				return false
			}
		}
		out = p.out
		return true
	})
	g.noteShortened(w, level)
	if ok {
		return out
	}
	clear(uses)
	uses["Any"], uses["TypeAlias"] = true, true
	out = []byte(w.inputType() + ": TypeAlias = dict[str, Any]\n")
	if w.output != nil {
		out = append(out, w.outputType()+": TypeAlias = Any\n"...)
	}
	return append(out, "\n\n"...)
}
