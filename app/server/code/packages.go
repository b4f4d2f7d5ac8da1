package code

import "strings"

// Packages are those that code finds installed beside its language's own library, as an
// operator asked for them.
type Packages struct{ Python, Node []string }

// maxPackagesLine is how many characters a tool's description has for the names of
// the packages of one language.
const maxPackagesLine = 300

// line returns the packages as text for a model. It may be empty.
func (p Packages) line() string {
	return packagesOf("Python", p.Python) + packagesOf("JavaScript", p.Node)
}

func packagesOf(language string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	line := " Installed for " + language + ": "
	for i, name := range names {
		if len(line)+len(name) > maxPackagesLine {
			return line + "…"
		}
		if i > 0 {
			line += ", "
		}
		line += name
	}
	return strings.TrimRight(line, ".") + "."
}
