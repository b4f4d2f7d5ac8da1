package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// index writes the two files to read first: README.md with a line for each
// server, and INDEX.md with a line for each function.
func (g *generator) index(modules []*module) {
	var readme, index strings.Builder
	fmt.Fprintf(&readme, "# Tools as %s functions\n\n", g.title)
	readme.WriteString(g.usage + "\n")
	readme.WriteString("`INDEX.md` lists every function with one line: search it with grep, then read the file of " +
		"the one you want.\n\n")
	index.WriteString("# Every function of every server\n")
	for _, m := range modules {
		fmt.Fprintf(&readme, "- `%s`: %s\n", m.name, printable(describe(m)))
		fmt.Fprintf(&index, "\n## %s\n\n%s\n", m.name, printable(endSentence(describe(m))))
		if len(m.wrappers) > 0 {
			index.WriteByte('\n')
		}
		for _, w := range m.wrappers {
			fmt.Fprintf(&index, "- `%s` (%s/%s): %s\n", w.name, m.name, w.stem+g.extension, printable(w.summary))
		}
		if left := m.leftOutLines(); len(left) > 0 {
			index.WriteString("\nLeft out of the list of this server:\n\n")
			for _, line := range left {
				fmt.Fprintf(&index, "- %s\n", printable(line))
			}
		}
	}
	if len(modules) == 0 {
		readme.WriteString("No server is configured.\n")
		index.WriteString("\nNo server is configured.\n")
	}
	g.add("README.md", []byte(readme.String()))
	g.add("INDEX.md", []byte(index.String()))
}

// describe returns a short description of a module's contents.
func describe(m *module) string {
	switch {
	case m.problem != "":
		return unavailable(m)
	case len(m.wrappers) == 1:
		return "1 tool of server " + nodeLiteral(m.id)
	}
	return fmt.Sprintf("%d tools of server %s", len(m.wrappers), nodeLiteral(m.id))
}

// The most lines about what is left out of one server, and the most bytes of each.
const (
	maxLeftOut     = 20
	maxLeftOutLine = 300
)

// leftOutLines lists the tools of a server that have no wrapper, one per line.
func (m *module) leftOutLines() []string {
	slices.Sort(m.leftOut)
	var lines []string
	for i, sentence := range m.leftOut {
		if i == maxLeftOut {
			return append(lines, fmt.Sprintf("and %d more", len(m.leftOut)-i))
		}
		lines = append(lines, oneLine(catalog.Clean(sentence), maxLeftOutLine))
	}
	return lines
}

// unavailable is the sentence about a missing server.
func unavailable(m *module) string {
	return fmt.Sprintf("Server %s is not available: %s", nodeLiteral(m.id), oneLine(m.problem, maxProblem))
}

// maxProblem is the maximum length in bytes of the sentence why a server is missing.
const maxProblem = 500
