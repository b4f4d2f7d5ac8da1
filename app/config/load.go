package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Load reads and checks the file at path, expanding variables through env
// (os.LookupEnv outside tests). An empty path gives the built-in configuration.
// A mistake in the file is an *Error.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	if path == "" {
		c := Default()
		c.source = configfile.Digest("", nil, env)
		return c, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Read(path, data, env)
}

// Read is like Load, but reads data instead of the file at path.
func Read(path string, data []byte, env func(string) (string, bool)) (*Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the directory of %q: %w", path, err)
	}
	asked := map[string]bool{}
	d := &decoder{file: path, dir: filepath.Dir(abs), left: map[string]bool{}, env: func(name string) (string, bool) {
		asked[name] = true
		return env(name)
	}}
	c, err := d.config(data)
	if err != nil {
		return nil, err
	}
	c.File, c.named, c.text = abs, path, data
	for _, name := range configfile.Variables(data) {
		delete(asked, name)
	}
	if len(asked) == 0 { // otherwise YAML has composed the name of a variable
		c.source = configfile.Digest(abs, data, env)
	}
	return c, nil
}

// Salvage returns the default configuration with the directory of the audit log that the file at path
// names, for a file with mistakes.
func Salvage(path string, env func(string) (string, bool)) *Config {
	c := Default()
	abs, err := filepath.Abs(path)
	if err != nil {
		return c
	}
	c.File = abs
	data, err := readFile(path)
	if err != nil {
		return c
	}
	d := &decoder{file: path, dir: filepath.Dir(abs), left: map[string]bool{}, env: env}
	root, err := d.parse(data)
	if err != nil || root == nil {
		return c
	}
	section := child(root, "audit")
	if section == nil {
		return c
	}
	if at := child(section, "path"); at != nil && d.path(&c.Audit.Path)(at, "audit.path") != nil {
		c.Audit.Path = ""
	}
	return c
}

// Source returns the digest of the input of Load, see configfile.Digest, or "" if the digest
// would not cover the whole input. If two digests are equal, the configurations are, too.
func (c *Config) Source() string { return c.source }

// Text returns the content of the file, which may hold credentials.
func (c *Config) Text() []byte { return c.text }

func readFile(path string) ([]byte, error) {
	if err := store.CheckOwner(path); err != nil {
		return nil, unreadable(path, err)
	}
	f, err := store.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, configfile.MaxSize+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(data) > configfile.MaxSize {
		return nil, &Error{File: path, Message: fmt.Sprintf("the file is larger than %s", showSize(configfile.MaxSize)),
			Advice: "name the configuration file, not a data file"}
	}
	return data, nil
}

// unreadable returns a one-sentence error for a file that cannot be read.
func unreadable(path string, err error) error {
	if foreign, ok := errors.AsType[*store.ForeignError](err); ok {
		return &Error{File: path, Message: foreign.Error(), Advice: foreign.Hint()}
	}
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		err = cause.Err
	}
	return &Error{File: path, Message: fmt.Sprintf("cannot read the configuration: %v", err),
		Advice: "name another file with --config"}
}

// config decodes the whole file.
func (d *decoder) config(data []byte) (*Config, error) {
	c := Default()
	root, err := d.parse(data)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := d.top(root, c); err != nil {
			return nil, err
		}
	}
	c.findings = d.findings
	return c, nil
}

// parse returns the file's one document, or nil when it holds only comments.
func (d *decoder) parse(data []byte) (*yaml.Node, error) {
	if at := invalidUTF8(data); at >= 0 {
		line := strings.Count(string(data[:at]), "\n") + 1
		return nil, &Error{File: d.file, Line: line, Message: "the file is not UTF-8", Advice: "save it as UTF-8"}
	}
	loader, err := yaml.NewLoader(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("starting the YAML reader: %w", err)
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, d.badYAML(data, err)
	}
	switch err := loader.Load(&more); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, d.badYAML(data, err)
	}
	return nil, d.fail(&more, "keep one document and remove the line ---", "the file holds more than one document")
}

// badYAML turns the parser's error into one sentence with its place.
func (d *decoder) badYAML(data []byte, err error) error {
	out := &Error{File: d.file, Message: fmt.Sprintf("not valid YAML: %v", err)}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		out.Line, out.Column = le.Mark.Line, le.Mark.Column
		out.Message = "not valid YAML: " + le.Message
		if le.ContextMsg != "" && le.ContextMark.Line > 0 {
			out.Message += fmt.Sprintf(" (%s that starts on line %d)", le.ContextMsg, le.ContextMark.Line)
		}
	}
	switch {
	case strings.Contains(string(data), "\n\t"):
		out.Advice = "indent with spaces: YAML does not allow tabs"
	case strings.HasSuffix(d.file, ".json"):
		out.Advice = "check the commas, quotes and brackets around this place; comments start with #"
	default:
		out.Advice = "check the indentation, and quote texts that contain : or #"
	}
	return out
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// LookupOrUnset is os.LookupEnv with a value for every variable, for readings whose credentials do not matter.
func LookupOrUnset(name string) (string, bool) {
	value, ok := os.LookupEnv(name)
	if !ok {
		value = "unset"
	}
	return value, true
}
