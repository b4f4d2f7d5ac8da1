package code

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// refusal is one sentence with the reason why a call was not executed, and a hint.
type refusal struct{ problem, hint string }

func (r *refusal) Error() string { return r.problem }

// Hint returns an instruction that fixes the problem.
func (r *refusal) Hint() string { return r.hint }

// arguments reads the arguments of one call. The first error is kept in err. After that every
// getter returns the zero value.
type arguments struct {
	values map[string]json.RawMessage
	err    error
}

// parseArguments reads an object that has only known names. Absent arguments
// are an empty object.
func parseArguments(raw json.RawMessage, known []string) (*arguments, error) {
	values := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := strictjson.UnmarshalOpen(raw, &values); err != nil {
			return nil, &refusal{"the arguments are not a JSON object",
				"pass an object with " + strings.Join(known, ", ")}
		}
	}
	values = unwrapped(values, known)
	resolveAliases(values, known)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return nil, unknownArgument(name, known)
		}
	}
	return &arguments{values: values}, nil
}

// unknownArgument refuses an argument that the tool does not have.
func unknownArgument(name string, known []string) error {
	problem, hint := "there is no argument "+quote(name), "the arguments are "+strings.Join(known, ", ")
	if slices.Contains(known, "code") {
		switch plain(name) {
		case "env", "environment", "envvars":
			hint = "code gets no environment and no credentials: put values into the code; tools hold their own " +
				"credentials"
		case "args", "argv", "stdin", "inputs", "variables":
			hint = "code gets no arguments and no input: put values into it"
		case "packages", "dependencies", "requirements", "pip", "libraries":
			hint = "nothing can be installed: write the code with the language's own library"
		case "files", "cwd", "workdir", "path", "filename":
			hint = "code starts in an empty /workspace: read files with a tool, or put the data into the code"
		}
	}
	return &refusal{problem + nearest.Hint(name, known), hint}
}

// language returns the sandbox's name of a language, or word if the language is unknown.
func language(word string) string {
	if name, known := program.ParseLanguage(word); known {
		return name
	}
	return word
}

// text returns a string argument, or "" if it is absent. If needed is set and the argument is
// absent or empty, text sets err.
func (a *arguments) text(name string, needed bool) string {
	var out string
	if a.read(name, "a string", &out) && needed && out == "" {
		a.fail("the argument %q is missing or empty", name)
	}
	return out
}

// texts returns a list of strings; absent means none. A single string counts as a list of one.
func (a *arguments) texts(name string) []string {
	var one string
	if strictjson.UnmarshalOpen(a.values[name], &one) == nil && one != "" {
		return []string{one}
	}
	var out []string
	a.read(name, "a list of strings", &out)
	return out
}

// flag returns a boolean argument; absent means false.
func (a *arguments) flag(name string) bool {
	var out bool
	a.read(name, "true or false", &out)
	return out
}

// whole returns an integer argument from 1 to most; absent means 0.
func (a *arguments) whole(name string, most int) int {
	out := a.positive(name)
	if out != math.Trunc(out) || out > float64(most) {
		a.fail("the argument %q must be a whole number from 1 to %d", name, most)
		return 0
	}
	return int(out)
}

// count returns an integer argument from 0 to most; absent means 0.
func (a *arguments) count(name string, most int) int {
	var out float64
	if a.read(name, "a number", &out) && (out != math.Trunc(out) || out < 0 || out > float64(most)) {
		a.fail("the argument %q must be a whole number from 0 to %d", name, most)
		return 0
	}
	return int(out)
}

// positive returns a number argument above 0; absent means 0.
func (a *arguments) positive(name string) float64 {
	var out float64
	read := a.read(name, "a number", &out)
	if _, given := a.values[name]; read && given && out <= 0 {
		a.fail("the argument %q must be a number above 0", name)
		return 0
	}
	return out
}

// read decodes one argument. It reports whether all arguments so far are valid. null means
// absent. A number or a boolean may be given as a string.
func (a *arguments) read(name, kind string, into any) bool {
	if a.err != nil {
		return false
	}
	raw, given := a.values[name]
	if !given || bytes.Equal(raw, []byte("null")) {
		delete(a.values, name)
		return true
	}
	err := strictjson.UnmarshalOpen(raw, into)
	var written string
	if _, text := into.(*string); err != nil && !text && strictjson.UnmarshalOpen(raw, &written) == nil {
		err = strictjson.UnmarshalOpen([]byte(strings.ToLower(strings.TrimSpace(written))), into)
	}
	if err != nil {
		a.fail("the argument %q must be %s", name, kind)
		return false
	}
	return true
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = &refusal{problem: fmt.Sprintf(format, args...)}
	}
}

// quote returns a foreign text for use in a sentence: quoted, escaped and shortened.
func quote(text string) string {
	const most = 80
	return fmt.Sprintf("%q", truncate.Characters(text, most))
}
