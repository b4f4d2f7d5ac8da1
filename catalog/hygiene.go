package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// FlagKind is the kind of problem found in a text.
type FlagKind string

// The kinds of problems that are detected in a server's texts about its tools.
const (
	FlagHidden      FlagKind = "hidden-characters"
	FlagInstruction FlagKind = "instruction"
	FlagImitation   FlagKind = "imitation"
)

// Flag is one finding about a tool's definition.
type Flag struct {
	Kind   FlagKind `json:"kind"`
	Field  string   `json:"field"`  // the path of keys to the text, with dots: inputSchema.properties.path.description
	Detail string   `json:"detail"` // one sentence; the flagged text is not in it
}

// String shows the finding in one line.
func (f Flag) String() string { return f.Field + ": " + f.Detail }

// withheld stands where text would have spoken to the model.
const withheld = "[withheld by Airlock: this text gives instructions to the model]"

// Clean returns text that is safe to show to a model: it removes hidden characters,
// withholds text that addresses the model, and adds a note about either. Harmless text is
// returned unchanged. Clean is idempotent.
func Clean(text string) string {
	visible, hidden := stripHidden(text)
	if addressesModel(visible) {
		return withheld
	}
	if hidden > 0 {
		return visible + fmt.Sprintf(" [Airlock removed %d hidden characters]", hidden)
	}
	return visible
}

// inspect returns what is wrong with one text.
func inspect(field, text string) []Flag {
	var flags []Flag
	visible, hidden := stripHidden(text)
	if hidden > 0 {
		flags = append(flags, Flag{FlagHidden, field, fmt.Sprintf("%d characters cannot be seen", hidden)})
	}
	if addressesModel(visible) {
		flags = append(flags, Flag{FlagInstruction, field, "the text gives instructions to the model"})
	}
	return flags
}

// Flags returns what is suspicious about one tool's definition: everything in
// it that a person would not see, that speaks to the model, or that poses as
// another server of this snapshot. A tool that is not there has no flags.
func (s *Snapshot) Flags(serverID, name string) []Flag {
	if _, ok := s.at[toolKey{serverID, name}]; ok && s.whole != nil {
		return s.whole.Flags(serverID, name)
	}
	tool, ok := s.at[toolKey{serverID, name}]
	if !ok {
		return nil
	}
	var flags []Flag
	rewriteTexts(tool.Raw, func(field, text string) string {
		flags = append(flags, inspect(field, text)...)
		return text
	})
	return append(flags, s.imitations(tool)...)
}

// Definition is a tool's whole definition as it may be shown to a model.
type Definition struct {
	// JSON is the definition as it arrived, or with flagged texts cleaned.
	JSON json.RawMessage
	// Flags list what was cleaned. If empty, JSON is byte for byte what the server sent.
	Flags []Flag
}

// Definition returns one tool's definition. A server or tool that is not there
// is an *UnknownError, a tool that is withheld a *WithheldError.
func (s *Snapshot) Definition(serverID, name string) (Definition, error) {
	tool, err := s.Lookup(serverID, name)
	if err == nil && tool.UI.OnlyApps {
		err = s.unknown(serverID, name)
	}
	if err != nil {
		return Definition{}, err
	}
	return s.cleaned(&tool)
}

// cleaned returns the definition of a tool, with flagged texts cleaned.
func (s *Snapshot) cleaned(tool *Tool) (Definition, error) {
	flags := s.Flags(tool.ServerID, tool.Name)
	if len(flags) == 0 {
		return Definition{JSON: tool.Raw}, nil
	}
	cleaned, err := rewriteTexts(tool.Raw, func(field, text string) string {
		if field == "description" {
			return s.cleanDescription(tool, text)
		}
		return Clean(text)
	})
	if err != nil {
		return Definition{}, fmt.Errorf("cleaning the definition of %q of server %q: %w", tool.Name, tool.ServerID, err)
	}
	return Definition{JSON: cleaned, Flags: flags}, nil
}

// cleanDescription is like Clean, and puts a warning first if the tool imitates another
// server's tool.
func (s *Snapshot) cleanDescription(tool *Tool, text string) string {
	text = Clean(text)
	for _, flag := range s.imitations(tool) {
		return "[Airlock: " + flag.Detail + "] " + text
	}
	return text
}

// rewriteTexts copies one JSON value and passes every string in it through change, with
// its path of keys. Keys, numbers and order are kept.
func rewriteTexts(raw json.RawMessage, change func(field, text string) string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	if err := rewriteValue(dec, &out, nil, change); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func rewriteValue(dec *json.Decoder, out *bytes.Buffer, path []string, change func(field, text string) string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		return rewriteGroup(dec, out, t, path, change)
	case string:
		return writeJSON(out, change(strings.Join(path, "."), t))
	default:
		return writeJSON(out, t)
	}
}

func rewriteGroup(dec *json.Decoder, out *bytes.Buffer, open json.Delim, path []string,
	change func(field, text string) string) error {
	out.WriteRune(rune(open))
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		inner := path
		if open == '{' {
			token, err := dec.Token()
			if err != nil {
				return err
			}
			key := token.(string) // the decoder has seen to it
			if err := writeJSON(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			inner = append(path[:len(path):len(path)], key)
		}
		if err := rewriteValue(dec, out, inner, change); err != nil {
			return err
		}
	}
	end, err := dec.Token()
	if err != nil {
		return err
	}
	out.WriteRune(rune(end.(json.Delim)))
	return nil
}

func writeJSON(out *bytes.Buffer, v any) error {
	text, err := canon.Verbatim(v)
	out.Write(text)
	return err
}
