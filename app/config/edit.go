package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// ServerEdit is a change of one entry under mcpServers. Exactly one of Add, Remove and Disabled is
// set.
type ServerEdit struct {
	ID       string
	Add      *ServerEntry
	Remove   bool
	Disabled *bool
	// Contain gives an added server a sandbox without a network.
	Contain bool
	// Origin is where an added server was found, for the audit log.
	Origin string
}

// ServerEntry is a new entry under mcpServers.
type ServerEntry struct {
	Command string            `yaml:"command,omitempty"`
	Args    []string          `yaml:"args,omitempty,flow"`
	URL     string            `yaml:"url,omitempty"`
	Env     map[string]string `yaml:"env,omitempty"`
	Headers map[string]string `yaml:"headers,omitempty"`
}

// ErrNoEntry is returned if an entry to change does not exist, ErrEntry if an entry to add exists.
var (
	ErrNoEntry = errors.New("no such server is configured")
	ErrEntry   = errors.New("a server with this name is configured already")
)

// EditServer returns the text of a configuration file with a change of one server. Everything else,
// comments and order included, stays as it is. The settings of a removed server are removed, too, and those of a
// contained one are added.
func EditServer(text []byte, edit ServerEdit) ([]byte, error) {
	changed, err := editUnder(keyServers, text, edit)
	if err != nil || !edit.Remove && !edit.Contain {
		return changed, err
	}
	settings, err := editUnder(keySettings, changed, edit)
	if edit.Remove && errors.Is(err, ErrNoEntry) {
		return changed, nil
	}
	return settings, err
}

// entry returns what is added under a top-level key.
func (e ServerEdit) entry(key string) any {
	if key == keySettings {
		return map[string]bool{"sandbox": true}
	}
	return e.Add
}

// editUnder edits the entries of one top-level key.
func editUnder(key string, text []byte, edit ServerEdit) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	e := &editor{lines: bytes.SplitAfter(text, []byte("\n")), key: key, edit: edit}
	if n := len(e.lines); n > 0 && len(e.lines[n-1]) == 0 {
		e.lines = e.lines[:n-1]
	}
	if err := e.change(&doc); err != nil {
		return nil, err
	}
	changed := bytes.Join(e.lines, nil)
	return changed, checkEdit(key, text, changed, edit)
}

// checkEdit returns an error unless the edit is the only difference between two texts.
func checkEdit(key string, before, after []byte, edit ServerEdit) error {
	var was, is map[string]any
	if err := errors.Join(yaml.Unmarshal(before, &was), yaml.Unmarshal(after, &is)); err != nil {
		return ErrUneditable
	}
	servers, _ := was[key].(map[string]any)
	servers = maps.Clone(servers)
	if servers == nil {
		servers = map[string]any{}
	}
	switch {
	case edit.Remove:
		delete(servers, edit.ID)
	case edit.Disabled != nil:
		entry, _ := servers[edit.ID].(map[string]any)
		entry = maps.Clone(entry)
		now, _ := is[key].(map[string]any)
		changed, _ := now[edit.ID].(map[string]any)
		if delete(entry, keyDisabled); *edit.Disabled {
			entry[keyDisabled] = true
		} else if value, set := changed[keyDisabled]; set && value == false { // in an entry on one line
			delete(changed, keyDisabled)
		}
		servers[edit.ID] = entry
	default:
		servers[edit.ID] = normal(edit.entry(key))
	}
	if was == nil {
		was = map[string]any{}
	}
	was[key] = servers
	if now, _ := is[key].(map[string]any); len(servers) == 0 && len(now) == 0 {
		is[key] = servers
	}
	if !reflect.DeepEqual(was, is) {
		return ErrUneditable
	}
	return nil
}

// ErrUneditable is returned if a file cannot be changed without changing more than was asked for.
var ErrUneditable = errors.New("the form of mcpServers in the file is too unusual to be edited: change it by hand")

// normal returns v as the YAML reader returns it.
func normal(v any) map[string]any {
	var read map[string]any
	if text, err := yaml.Marshal(v); err != nil || yaml.Unmarshal(text, &read) != nil {
		return nil
	}
	return read
}

const (
	keyServers  = "mcpServers"
	keySettings = "servers"
	keyDisabled = "disabled"
)

// editor changes the lines of a file. Its methods are called once.
type editor struct {
	lines [][]byte
	key   string // the top-level key of the entries
	edit  ServerEdit
}

func (e *editor) change(doc *yaml.Node) error {
	var root *yaml.Node
	if len(doc.Content) > 0 {
		root = doc.Content[0]
	}
	if root == nil || root.Kind != yaml.MappingNode {
		if root != nil && !isNull(root) {
			return ErrUneditable
		}
		root = &yaml.Node{Kind: yaml.MappingNode}
	}
	servers := child(root, e.key)
	isEmpty := servers == nil || len(servers.Content) == 0
	at := -1
	for i := 0; !isEmpty && i < len(servers.Content); i += 2 {
		if servers.Content[i].Value == e.edit.ID {
			at = i
		}
	}
	switch {
	case e.edit.Add != nil && at >= 0:
		return ErrEntry
	case e.edit.Add == nil && at < 0:
		return ErrNoEntry
	case e.edit.Add != nil && isEmpty:
		return e.addFirst(root, servers)
	case servers.Kind != yaml.MappingNode || servers.Style&yaml.FlowStyle != 0:
		return ErrUneditable
	case e.edit.Add != nil:
		return e.add(servers)
	case e.edit.Remove:
		return e.remove(root, servers, at)
	}
	return e.disable(servers.Content[at], servers.Content[at+1])
}

// addFirst adds the entry to a file without servers.
func (e *editor) addFirst(root, servers *yaml.Node) error {
	if root.Style&yaml.FlowStyle != 0 {
		return ErrUneditable
	}
	if servers != nil { // mcpServers: {} or without a value
		key := keyNode(root, e.key)
		if servers.Line > key.Line || len(servers.Content) > 0 {
			return ErrUneditable
		}
		line := string(e.lines[key.Line-1])
		end := strings.IndexByte(line, ':') + 1
		rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line[end:]), "{}"))
		if rest != "" && !strings.HasPrefix(rest, "#") {
			return ErrUneditable
		}
		e.lines[key.Line-1] = []byte(strings.TrimRight(line[:end]+" "+rest, " ") + "\n")
		return e.insert(key.Line, 2)
	}
	if n := len(e.lines); n > 0 && !bytes.HasSuffix(e.lines[n-1], []byte("\n")) {
		e.lines[n-1] = append(e.lines[n-1], '\n')
	}
	e.lines = append(e.lines, []byte(e.key+":\n"))
	return e.insert(len(e.lines), 2)
}

// add adds the entry behind the last one.
func (e *editor) add(servers *yaml.Node) error {
	last := servers.Content[len(servers.Content)-1]
	return e.insert(lastLine(last), servers.Content[0].Column-1)
}

// insert inserts the new entry behind a line.
func (e *editor) insert(line, indent int) error {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(map[string]any{e.edit.ID: e.edit.entry(e.key)}), encoder.Close()); err != nil {
		return err
	}
	text := out.Bytes()
	var added [][]byte
	for one := range bytes.Lines(text) {
		added = append(added, append(bytes.Repeat([]byte(" "), indent), one...))
	}
	if line > 0 && !bytes.HasSuffix(e.lines[line-1], []byte("\n")) {
		e.lines[line-1] = append(e.lines[line-1], '\n')
	}
	e.lines = slices.Insert(e.lines, line, added...)
	return nil
}

// remove removes the lines of an entry with the comments directly above it.
func (e *editor) remove(root, servers *yaml.Node, at int) error {
	first, last := servers.Content[at].Line, lastLine(servers.Content[at+1])
	for first > 1 && bytes.HasPrefix(bytes.TrimSpace(e.lines[first-2]), []byte("#")) &&
		first-1 > keyNode(root, e.key).Line {
		first--
	}
	var rest [][]byte
	if len(servers.Content) == 2 {
		rest = [][]byte{[]byte(strings.Repeat(" ", servers.Content[at].Column-1) + "{}\n")}
	}
	e.lines = slices.Replace(e.lines, first-1, last, rest...)
	return nil
}

// disable sets or removes the key disabled of an entry.
func (e *editor) disable(key, entry *yaml.Node) error {
	if entry.Kind != yaml.MappingNode {
		return ErrUneditable
	}
	isFlow := entry.Style&yaml.FlowStyle != 0
	if set := keyNode(entry, keyDisabled); set != nil {
		value := child(entry, keyDisabled)
		line := e.lines[value.Line-1]
		from := offset(line, value.Column-1)
		if from+len(value.Value) > len(line) || string(line[from:from+len(value.Value)]) != value.Value {
			return ErrUneditable
		}
		if *e.edit.Disabled || isFlow {
			e.lines[value.Line-1] = slices.Replace(line, from, from+len(value.Value),
				[]byte(fmt.Sprint(*e.edit.Disabled))...)
			return nil
		}
		e.lines = slices.Delete(e.lines, value.Line-1, value.Line)
		return nil
	}
	switch {
	case !*e.edit.Disabled:
	case isFlow:
		line := e.lines[entry.Line-1]
		at := offset(line, entry.Column)
		more := ""
		if len(entry.Content) > 0 {
			more = ", "
		}
		e.lines[entry.Line-1] = slices.Insert(slices.Clone(line), at, []byte(keyDisabled+": true"+more)...)
	default:
		indent := strings.Repeat(" ", entry.Content[0].Column-1)
		e.lines = slices.Insert(e.lines, entry.Content[0].Line-1, []byte(indent+keyDisabled+": true\n"))
	}
	return nil
}

// offset returns the position of the byte after a number of characters, which the columns of nodes count.
func offset(line []byte, characters int) (at int) {
	for range characters {
		_, size := utf8.DecodeRune(line[at:])
		at += size
	}
	return at
}

// keyNode returns the node of a key.
func keyNode(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i]
		}
	}
	return nil
}

// lastLine returns the last line of a node. checkEdit finds the cases in which it is not.
func lastLine(n *yaml.Node) int {
	last := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(strings.TrimRight(n.Value, "\n"), "\n") + 1
	}
	for _, inner := range n.Content {
		last = max(last, lastLine(inner))
	}
	return last
}
