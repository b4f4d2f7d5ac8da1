package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// maxNodes is the maximum number of values to which aliases may expand one file.
const maxNodes = 100_000

// decoder walks the nodes of one file. Its errors contain the position.
type decoder struct {
	credentials []Variable // see Config.Credentials
	file        string     // as shown in errors
	dir         string     // absolute; relative paths are resolved against it
	env         func(string) (string, bool)
	nodes       int // values read so far
	profiled    []profiledServer

	left     map[string]bool // IDs of servers that were skipped
	findings []Finding
}

// field is one key of a mapping. It has either a scalar value or a function that reads it.
type field struct {
	key  string
	val  value
	read func(n *yaml.Node, path string) error
}

// fail returns an error with the position of n.
func (d *decoder) fail(n *yaml.Node, advice, format string, args ...any) error {
	return &Error{File: d.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...), Advice: advice}
}

// note records a finding with the position of n.
func (d *decoder) note(n *yaml.Node, message, advice string) {
	d.findings = append(d.findings, Finding{File: d.file, Line: n.Line, Column: n.Column, Message: message,
		Advice: advice})
}

// object reads a mapping, and returns an error for unknown keys. A missing value is an empty
// mapping.
func (d *decoder) object(n *yaml.Node, path string, fields []field) error {
	return d.entries(n, path, func(key, val *yaml.Node) error {
		at := join(path, key.Value)
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			return d.unknownKey(key, path, fields)
		}
		if fields[i].read != nil {
			return fields[i].read(val, at)
		}
		return d.scalar(val, at, fields[i].val)
	})
}

func (d *decoder) unknownKey(key *yaml.Node, path string, fields []field) error {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	advice := "the keys known here are " + strings.Join(known, ", ")
	if best := nearest.Word(key.Value, known); best != "" {
		advice = fmt.Sprintf("did you mean %q?", best)
	}
	if path == "" {
		return d.fail(key, advice, "unknown key %q", key.Value)
	}
	return d.fail(key, advice, "unknown key %q in %s", key.Value, path)
}

// entries calls each for every key and value of a mapping, in the file's order.
func (d *decoder) entries(n *yaml.Node, path string, each func(key, val *yaml.Node) error) error {
	n, err := d.follow(n)
	if err != nil || isNull(n) {
		return err
	}
	if n.Kind != yaml.MappingNode {
		return d.wrongType(n, path, "a mapping of keys to values")
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := d.follow(n.Content[i])
		if err != nil {
			return err
		}
		if key.Kind != yaml.ScalarNode {
			return d.fail(n.Content[i], "", "a key in %s is not a plain text", orTop(path))
		}
		if line, twice := seen[key.Value]; twice {
			return d.fail(n.Content[i], "keep one of the two", "the key %q appears twice in %s, first on line %d",
				key.Value, orTop(path), line)
		}
		seen[key.Value] = n.Content[i].Line
		if err := each(n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// items calls each for every element of a sequence.
func (d *decoder) items(n *yaml.Node, path string, each func(n *yaml.Node, path string) error) error {
	n, err := d.follow(n)
	if err != nil || isNull(n) {
		return err
	}
	if n.Kind != yaml.SequenceNode {
		return d.wrongType(n, path, "a list")
	}
	for i, item := range n.Content {
		if err := each(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// scalar reads one value. Its error quotes the text of the file, never the value of a
// variable.
func (d *decoder) scalar(n *yaml.Node, path string, v value) error {
	text, err := d.text(n, path)
	if err != nil {
		return err
	}
	if err := v.set(text); err != nil {
		return d.fail(n, "", "%s %v, not %q", path, err, n.Value)
	}
	return nil
}

// text returns a scalar as written, with variables expanded. Numbers and booleans are text,
// too, so that env: {PORT: 8080} is valid.
func (d *decoder) text(n *yaml.Node, path string) (string, error) {
	n, err := d.follow(n)
	if err != nil {
		return "", err
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", d.wrongType(n, path, "a single value")
	case isNull(n):
		return "", d.fail(n, `write "" for an empty text, or leave the key out`, "%s has no value", path)
	case strings.ContainsRune(n.Value, 0):
		return "", d.fail(n, "", "%s contains a NUL byte", path)
	}
	out, err := d.expand(n.Value)
	if err != nil {
		if advice, ok := errors.AsType[*adviceError](err); ok {
			return "", d.fail(n, advice.advice, "%s %v", path, err)
		}
		return "", d.fail(n, "", "%s %v", path, err)
	}
	if strings.ContainsRune(out, 0) {
		return "", d.fail(n, "", "%s contains a NUL byte", path)
	}
	return out, nil
}

// texts reads a list of texts into to.
func (d *decoder) texts(to *[]string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			*to = append(*to, text)
			return err
		})
	}
}

// paths reads a list of paths into to and makes them absolute.
func (d *decoder) paths(to *[]string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			var one string
			err := d.path(&one)(n, path)
			*to = append(*to, one)
			return err
		})
	}
}

// path reads a path into to. A relative path is resolved against the file's directory.
func (d *decoder) path(to *string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if err := d.scalar(n, path, free{to}); err != nil {
			return err
		}
		if !filepath.IsAbs(*to) {
			*to = filepath.Join(d.dir, *to)
		}
		return nil
	}
}

// secrets reads a mapping of texts that may be credentials into to.
func (d *decoder) secrets(to *map[string]secret.Value) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = map[string]secret.Value{}
		return d.entries(n, path, func(key, val *yaml.Node) error {
			text, err := d.text(val, join(path, key.Value))
			(*to)[key.Value] = secret.New(text)
			return err
		})
	}
}

// follow counts n, and returns its target if it is an alias.
func (d *decoder) follow(n *yaml.Node) (*yaml.Node, error) {
	d.nodes++
	if d.nodes > maxNodes {
		return nil, d.fail(n, "write fewer values or fewer aliases", "the file has more than %d values", maxNodes)
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias, nil
	}
	return n, nil
}

func (d *decoder) wrongType(n *yaml.Node, path, want string) error {
	got := "a single value"
	switch n.Kind {
	case yaml.MappingNode:
		got = "a mapping"
	case yaml.SequenceNode:
		got = "a list"
	}
	return d.fail(n, "", "%s must be %s, not %s", orTop(path), want, got)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// join returns the path of a key inside path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// orTop returns path as the subject of a sentence.
func orTop(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
