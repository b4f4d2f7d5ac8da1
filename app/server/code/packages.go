package code

import "strings"

// Packages are the installed packages of each language besides its standard library. The operator
// configures them.
type Packages struct{ Python, Node []string }

// maxPackagesLine is the maximum length of the package names of one language in a tool's
// description, in characters.
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
