package cli

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The model of one verb has the same words, flags and arguments as the verb in the whole grammar.
// Verbs that describe other verbs have no model.
func TestOneVerbIsReadAsInTheWholeGrammar(t *testing.T) {
	whole, _ := newWholeParser(io.Discard, io.Discard)
	describing := reflect.TypeFor[selfDescription]()
	alone := 0
	for _, verb := range whole.Model.Children {
		parser, found := newVerbParser(verb.Name)
		_, _, describes := verbField(reflect.New(describing).Elem(), verb.Name)
		if found == describes {
			t.Errorf("verb %q can be read alone: %v; it describes the others: %v", verb.Name, found, describes)
		}
		if !found {
			continue
		}
		alone++
		if len(parser.Model.Children) != 1 {
			t.Fatalf("the parser of %q has %d verbs, want 1", verb.Name, len(parser.Model.Children))
		}
		if got, want := described(parser.Model.Children[0]), described(verb); !slices.Equal(got, want) {
			t.Errorf("verb %q alone:\n%s\nwant as in the whole grammar:\n%s", verb.Name, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
	if want := len(whole.Model.Children) - describing.NumField(); alone != want {
		t.Errorf("%d verbs are read alone, want %d", alone, want)
	}
}

// described returns a line for a node of the command line and for each flag, argument
// and verb below it.
func described(node *kong.Node) []string {
	lines := []string{fmt.Sprintf("%s %q hidden=%v passthrough=%v aliases=%q default=%v",
		node.FullPath(), node.Help, node.Hidden, node.Passthrough, node.Aliases, node.DefaultCmd != nil)}
	for _, argument := range node.Positional {
		lines = append(lines, describedValue(argument))
	}
	for _, flag := range node.Flags {
		lines = append(lines,
			fmt.Sprintf("%s short=%q aliases=%q hidden=%v xor=%q and=%q envs=%q placeholder=%q negated=%q",
				describedValue(flag.Value),
				flag.Short, flag.Aliases, flag.Hidden, flag.Xor, flag.And, flag.Envs, flag.PlaceHolder,
				flag.Tag.Negatable))
	}
	for _, child := range node.Children {
		lines = append(lines, described(child)...)
	}
	return lines
}

func describedValue(v *kong.Value) string {
	return fmt.Sprintf("  %s %s %q enum=%q default=%q required=%v", v.Summary(), v.Target.Type(), v.Help, v.Enum,
		v.Default, v.Required)
}

// A command line that the model of one verb does not accept is parsed by the whole grammar. Verbs
// with arguments that are passed through have no model, because --help could be among them.
func TestTheWholeGrammarReadsWhatOneVerbDoesNot(t *testing.T) {
	for _, line := range []string{
		"", "--version", "--help", "help run", "man", "complete -- r", "nosuchverb", "run --help", "run -h",
		"run --version",
		"run --nosuchflag", "run --timeout soon", "run a.py b.py", "audit", "audit nosuchverb", "audit --help",
		"--config a.yaml run",
	} {
		if _, understood := parseVerb(strings.Fields(line)); understood {
			t.Errorf("airlock %s: understood by a verb alone", line)
		}
	}
	for _, line := range []string{"version", "run", "run a.py --timeout 2s", "run --lang node -", "audit verify",
		"tools list --json"} {
		if _, understood := parseVerb(strings.Fields(line)); !understood {
			t.Errorf("airlock %s: not understood by the verb alone", line)
		}
	}
	whole, _ := newWholeParser(io.Discard, io.Discard)
	for _, leaf := range whole.Model.Leaves(false) {
		_, found := newVerbParser(strings.Fields(leaf.Path())[0])
		for _, argument := range leaf.Positional {
			if found && argument.Passthrough {
				t.Errorf("%s passes words on unread, --help among them", leaf.Path())
			}
		}
	}
}
