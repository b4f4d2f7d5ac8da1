package config

import (
	"os"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Mentioned returns possible credentials in a file that could not be loaded, so that they can
// be redacted in messages about the file: values that AllCredentials would return, as far as they can
// be recognized, values of variables that the file names, and words in the position of a name
// that do not look like one. If the file cannot be read, it returns nil.
func Mentioned(path string, env func(string) (string, bool)) []secret.Value {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a pipe cannot be read twice
		return nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil
	}
	m := &mentions{env: env, nodes: maxNodes}
	var root yaml.Node
	if loader, err := yaml.NewLoader(strings.NewReader(string(data))); err == nil && loader.Load(&root) == nil {
		m.node("", &root)
	} else {
		m.lines(string(data))
	}
	return m.found
}

// mentions collects values that may be credentials.
type mentions struct {
	env   func(string) (string, bool)
	nodes int // remaining number of nodes to visit: aliases can multiply them
	found []secret.Value
}

func (m *mentions) add(values ...string) {
	for _, v := range values {
		if !isOrdinary(v) {
			m.found = append(m.found, secret.New(v))
		}
	}
}

// node collects credentials from the value of a key.
func (m *mentions) node(name string, n *yaml.Node) {
	if m.nodes--; m.nodes < 0 {
		return
	}
	switch n.Kind {
	case yaml.AliasNode:
		m.node(name, n.Alias)
	case yaml.ScalarNode:
		m.text(name, n.Value)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			m.name(key)
			m.node(key, n.Content[i+1])
		}
	default:
		if name == "secrets" || name == "public" { // of a server: they list names
			name = ""
		}
		var texts []string
		for _, item := range n.Content {
			texts = append(texts, item.Value)
			m.node(name, item)
		}
		for _, flag := range flagValues(texts) {
			m.text(flag.name, flag.value)
		}
	}
}

// text collects credentials from a scalar value of a key.
func (m *mentions) text(name, text string) {
	for _, found := range variableUse.FindAllStringSubmatch(text, -1) {
		m.variable(found[1], NamesCredential(found[1]))
		if NamesCredential(found[1]) || NamesCredential(name) {
			m.add(found[2]) // the default
		}
	}
	if scheme, reference, ok := strings.Cut(text, ":"); ok &&
		slices.Contains([]string{"env", "age", "keyring"}, scheme) {
		m.name(reference)
		if scheme == "env" {
			m.variable(reference, true)
		}
		return
	}
	if NamesCredential(name) && !variableUse.MatchString(text) {
		m.add(text)
		m.add(headerCredentials(text)...)
	}
	m.add(addressCredentials(text)...)
}

// variable collects credentials from a reference to a variable.
func (m *mentions) variable(name string, isCredential bool) {
	name = strings.TrimPrefix(name, "env:")
	m.name(name)
	if value, ok := m.env(name); ok && isCredential {
		m.add(value)
	}
}

// name collects a word in the position of a name if it looks random.
func (m *mentions) name(name string) {
	if !IsName(name) {
		m.add(name)
	}
}

// lines collects credentials from a file that is not valid YAML, line by line.
func (m *mentions) lines(text string) {
	for line := range strings.Lines(text) {
		for _, found := range lineEntry.FindAllStringSubmatch(line, -1) {
			m.name(found[1])
			m.text(found[1], strings.Trim(strings.TrimSpace(found[2]), `"'`))
		}
		for word := range strings.FieldsFuncSeq(line,
			func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'{}[],&*!`, r) }) {
			m.name(strings.TrimSuffix(word, ":"))
		}
	}
}

var (
	variableUse = lazyregexp.New(`\$\{([^}:]*(?::[^}:-]*)?)(?::-([^}]*))?\}`)
	lineEntry   = lazyregexp.New(`["']?([\w.-]+)["']?\s*:\s*("[^"]*"|'[^']*'|[^,{}\[\]\n]+)`)
)

// IsName reports whether a text may be a name. It is false if the text contains characters
// that names do not have, or looks random: at least twelve bytes long, with at least four
// digits and four letters.
func IsName(text string) bool {
	digits, letters := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case !strings.ContainsRune("_-./: @$", r):
			return false
		}
	}
	return len(text) < 12 || digits < 4 || letters < 4
}
