package codegen

import (
	"fmt"
	"strings"
)

// nodeLanguage names things for JavaScript modules and their declarations.
var nodeLanguage = language{
	title:     "JavaScript",
	function:  nodeName,
	alias:     func(tool string) bool { return isIdentifier(tool, nodeReserved) },
	files:     []string{"index"},
	extension: ".d.ts",
	usage: "    import { someFunction } from \"./servers/some_server/index.js\";\n" +
		"    const result = await someFunction({ name: \"value\" });\n    result.data;\n",
}

// nodeImport is the one line of a module that reaches outside of it. No tool
// can be called $invoke: the protocol allows no dollar sign.
const nodeImport = "import { invoke as $invoke } from \"../../client/mcp_client.js\";\n"

// nodeShared lets code catch what the functions throw without another import.
const nodeShared = "export { ToolError } from \"../../client/mcp_client.js\";\n"

// node writes a directory for each server: index.js with every function, index.d.ts with
// a line for each, and for each tool a module and its declarations.
func (g *generator) node(modules []*module) {
	g.add("package.json", []byte("{\n  \"private\": true,\n  \"type\": \"module\"\n}\n"))
	for _, m := range modules {
		if m.problem != "" {
			g.nodeMissing(m)
			continue
		}
		for _, w := range m.wrappers {
			g.addWrapper(w, m.name+"/"+w.stem+".d.ts", g.nodeDeclaration)
			g.add(m.name+"/"+w.stem+".js", []byte("export { "+w.name+" } from \"./index.js\";\n"))
		}
		g.nodeIndex(m)
	}
}

// nodeMissing writes the module of a server that did not answer. The names of its tools
// are unknown, so only the default export can report the problem.
func (g *generator) nodeMissing(m *module) {
	b := nodeShared + "export const problem = " + nodeLiteral(unavailable(m)) + ";\n\n" +
		"export default new Proxy({}, {\n" +
		"  get(target, name) {\n" +
		"    // Promises and inspection look for these on any object.\n" +
		"    if (typeof name === \"symbol\" || name === \"then\" || name === \"toJSON\") return undefined;\n" +
		"    throw new Error(problem);\n" +
		"  },\n" +
		"});\n"
	g.add(m.name+"/index.js", []byte(b))
	g.add(m.name+"/index.d.ts", []byte(nodeShared+"export declare const problem: string;\n\n"+
		"declare const missing: { readonly [name: string]: never };\nexport default missing;\n"))
}

// nodeIndex writes a server's module and its list of declarations.
func (g *generator) nodeIndex(m *module) {
	code := []byte("// Calls go to the server's tools. The types and descriptions are in index.d.ts.\n" + nodeImport)
	list := []byte("export {};\n\n")
	about := []string{describe(m) + "."}
	for _, line := range m.leftOutLines() {
		about = append(about, "Left out: "+line)
	}
	list = jsDoc(list, "", strings.Join(about, "\n"))
	if !m.offers(sharedError) {
		code = append(code, nodeShared...)
		list = append(list, '\n')
		list = jsDoc(list, "", "What the functions throw: a tool call that failed.")
		list = append(list, nodeShared...)
	}
	code = append(code, "\nconst $server = "+nodeLiteral(m.id)+";\n"...)
	for _, w := range m.wrappers {
		parameter := "args"
		if w.optional {
			parameter = "args = {}"
		}
		code = append(code, fmt.Sprintf("\nexport function %s(%s) {\n  return $invoke($server, %s, args, %s);\n}\n",
			w.name, parameter, nodeLiteral(w.tool.Name), nodeLiteral(w.name))...)
		names := []string{w.name}
		if w.alias != "" {
			code = append(code, "export { "+w.name+" as "+w.alias+" };\n"...)
			names = append(names, w.name+" as "+w.alias)
		}
		for _, name := range w.defines()[1:] {
			names = append(names, "type "+name)
		}
		list = append(list, '\n')
		list = jsDoc(list, "", w.summary)
		list = append(list, "export { "+strings.Join(names, ", ")+" } from \"./"+w.stem+".js\";\n"...)
	}
	g.add(m.name+"/index.js", code)
	g.add(m.name+"/index.d.ts", list)
}

// nodeDeclaration writes the declarations of one tool.
func (g *generator) nodeDeclaration(w *wrapper) []byte {
	types := g.nodeSignature(w)
	b := []byte("import type { ToolResult } from \"../../client/mcp_client.js\";\n\n")
	b = jsDoc(b, "", fmt.Sprintf("Tool %s of server %s, wrapped by Airlock. Definition: %s.",
		nodeLiteral(w.tool.Name), nodeLiteral(w.module.id), w.tool.Digest))
	b = append(append(b, '\n'), types...)
	arguments, result := "args: ", "unknown"
	if w.optional {
		arguments = "args?: "
	}
	if w.output != nil {
		result = w.outputType()
	}
	b = jsDoc(b, "", w.documentation(`await catalog.getToolDefinition({ serverId: %s, name: %s })`))
	return append(b, "export declare function "+w.name+"("+arguments+w.inputType()+"): Promise<ToolResult<"+result+
		">>;\n"...)
}

// nodeSignature writes the types of a tool in as much detail as there is room for.
func (g *generator) nodeSignature(w *wrapper) []byte {
	var out []byte
	level, ok := shortest(func(d detail) bool {
		n := &nodeTypes{declarations: declare(w.input, w.inputType(), d)}
		if !n.write() {
			return false
		}
		if w.output != nil {
			n = &nodeTypes{declarations: declare(w.output, w.outputType(), d), out: n.out}
			if !n.write() {
				return false
			}
		}
		out = n.out
		return true
	})
	g.noteShortened(w, level)
	if ok {
		return out
	}
	out = []byte("export type " + w.inputType() + " = { [key: string]: unknown };\n\n")
	if w.output != nil {
		out = append(out, "export type "+w.outputType()+" = unknown;\n\n"...)
	}
	return out
}
