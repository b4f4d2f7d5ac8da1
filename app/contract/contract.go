// Package contract holds the runtime contract as readable cases:
// a program, and what a run of it must report. The same files drive the tests
// and `airlock doctor --contract`. cases/README.md describes them.
package contract

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/tools/txtar"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

//go:embed cases
var files embed.FS

// The files that a case is made of.
const (
	codeFile = "code"
	wantFile = "want.yaml"
)

// Case is one program and what a run of it must report.
type Case struct {
	Name     string // "python/010-sys-exit"
	About    string // why the case exists, one or more sentences
	Language string // "python" or "node"
	Code     []byte
	Want     Want
}

// Want is the expected report of a run. Only OK is required; absent members are not
// checked.
type Want struct {
	OK    bool   `yaml:"ok"`
	Data  Value  `yaml:"data"`
	Error *Error `yaml:"error"` // present exactly when OK is false
	// Stdout and Stderr are texts that the code's output must contain.
	Stdout Texts `yaml:"stdout"`
	Stderr Texts `yaml:"stderr"`
	// Note are texts that the envelope's note must contain.
	Note Texts `yaml:"note"`
	// Calls is how many tool calls the run must have made.
	Calls *int `yaml:"calls"`
	// Timeout is the run's time limit, when the case is about it.
	Timeout Duration `yaml:"timeout"`
	// Background reports that no request waits for the run.
	Background bool `yaml:"background"`
	// Suspended is how often the run must have been suspended, at least. Such a case needs a real sandbox.
	Suspended int `yaml:"suspended"`
	// Sandbox marks a case that needs the limits of a real sandbox.
	Sandbox bool `yaml:"sandbox"`
}

// Error is the expected error of a failure.
type Error struct {
	Type      string `yaml:"type"`
	Message   Texts  `yaml:"message"` // texts that the message must contain
	Retryable bool   `yaml:"retryable"`
	Source    string `yaml:"source"`
	Traceback Texts  `yaml:"traceback"`
	// Hidden are texts that neither message nor traceback may contain.
	Hidden Texts `yaml:"hidden"`
}

// Texts is one text or a list of texts.
type Texts []string

// UnmarshalYAML reads a scalar or a sequence of scalars.
func (t *Texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = Texts{node.Value}
		return nil
	}
	return node.Decode((*[]string)(t))
}

// Value is any value, or none at all: null is a value.
type Value struct {
	Set bool
	Any any
}

// UnmarshalYAML reads any value. Integers keep all their digits.
func (v *Value) UnmarshalYAML(node *yaml.Node) error {
	v.Set = true
	var err error
	v.Any, err = exact(node)
	return err
}

var integer = lazyregexp.New(`^-?(0|[1-9][0-9]*)$`)

func exact(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			var err error
			if list[i], err = exact(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			value, err := exact(node.Content[i+1])
			if err != nil {
				return nil, err
			}
			object[node.Content[i].Value] = value
		}
		return object, nil
	}
	if node.Style == 0 && integer.MatchString(node.Value) { // style 0: without quotes
		return json.Number(node.Value), nil
	}
	var value any
	err := node.Decode(&value)
	return value, err
}

// Duration is a time.Duration written as "2s".
type Duration time.Duration

// UnmarshalYAML reads the notation of time.ParseDuration.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	*d = Duration(parsed)
	return err
}

// Cases returns the cases of all languages in the order of their names.
func Cases() ([]Case, error) {
	var cases []Case
	for _, language := range []string{"node", "python"} {
		paths, err := fs.Glob(files, "cases/"+language+"/*.txtar")
		if err != nil {
			return nil, err
		}
		for _, file := range paths {
			raw, err := files.ReadFile(file)
			if err != nil {
				return nil, err
			}
			c, err := Parse(language+"/"+strings.TrimSuffix(path.Base(file), ".txtar"), raw)
			if err != nil {
				return nil, fmt.Errorf("contract case %s: %w", file, err)
			}
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// Parse reads one case. Its name starts with the language. The format is that
// of golang.org/x/tools/txtar with the files `code` and `want.yaml`; the text before them
// explains the case. Anything unknown is an error.
func Parse(name string, raw []byte) (Case, error) {
	archive := txtar.Parse(raw)
	c := Case{Name: name, About: strings.TrimSpace(string(archive.Comment))}
	c.Language, _, _ = strings.Cut(name, "/")
	if c.About == "" {
		return Case{}, errors.New("the text before the first file, which shows why the case exists, is missing")
	}
	if len(archive.Files) != 2 || archive.Files[0].Name != codeFile || archive.Files[1].Name != wantFile {
		return Case{}, fmt.Errorf("a case must have exactly the files %q and %q", codeFile, wantFile)
	}
	c.Code = archive.Files[0].Data
	decoder := yaml.NewDecoder(bytes.NewReader(archive.Files[1].Data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c.Want); err != nil {
		return Case{}, fmt.Errorf("%s: %w", wantFile, err)
	}
	c.Want.Sandbox = c.Want.Sandbox || c.Want.Suspended > 0
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Case{}, fmt.Errorf("%s holds more than one document", wantFile)
	}
	return c, c.Want.check()
}

// check refuses expectations that contradict themselves.
func (w Want) check() error {
	switch {
	case w.OK && w.Error != nil:
		return errors.New("a run that is ok must not expect an error")
	case !w.OK && w.Error == nil:
		return errors.New("a run that is not ok must expect an error")
	case !w.OK && w.Data.Set:
		return errors.New("a run that is not ok must not expect data")
	case w.Error != nil && w.Error.Type == "":
		return errors.New("the expected error must have a type")
	case w.Error != nil && len(w.Error.Message) == 0:
		return errors.New("the expected error must have a message")
	}
	return nil
}
