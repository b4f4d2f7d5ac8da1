package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// refusal says in one sentence why a call was not done, and what to do instead.
type refusal struct{ problem, hint string }

func (r *refusal) Error() string { return r.problem }

// Hint says what to do instead.
func (r *refusal) Hint() string { return r.hint }

// arguments reads the arguments of one call. The first mistake is kept in err;
// after it every getter returns a zero value.
type arguments struct {
	values map[string]json.RawMessage
	err    error
}

// parseArguments reads an object that has only known names. Absent arguments
// are an empty object.
func parseArguments(raw json.RawMessage, known []string) (*arguments, error) {
	values := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := json.Unmarshal(raw, &values); err != nil {
			return nil, &refusal{"the arguments are not a JSON object", "pass an object with " + strings.Join(known, ", ")}
		}
	}
	resolveAliases(values, known)
	for name := range values {
		if !slices.Contains(known, name) {
			return nil, &refusal{fmt.Sprintf("there is no argument %s", quote(name)), "the arguments are " + strings.Join(known, ", ")}
		}
	}
	return &arguments{values: values}, nil
}

// aliases are other names that models give arguments, each with the names that it
// may stand for; the first that the tool knows counts.
var aliases = map[string][]string{
	"toolName": {"name", "query"}, "tool_name": {"name", "query"}, "tool": {"name", "query"}, "name": {"query"},
	"server": {"serverId"}, "server_id": {"serverId"}, "serverID": {"serverId"}, "serverName": {"serverId"}, "server_name": {"serverId"},
	"lang": {"language"}, "program": {"code"}, "script": {"code"}, "source": {"code"},
	"runId": {"run_id"}, "runID": {"run_id"}, "id": {"run_id"}, "timeoutSeconds": {"timeout_seconds"},
}

// resolveAliases gives arguments the names that the tool knows. One that is given
// under both names stays, and is refused as unknown, unless it says the same.
func resolveAliases(values map[string]json.RawMessage, known []string) {
	for alias, names := range aliases {
		raw, given := values[alias]
		if !given || slices.Contains(known, alias) {
			continue
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				continue
			}
			if other, both := values[name]; !both || bytes.Equal(other, raw) {
				values[name] = raw
				delete(values, alias)
			}
			break
		}
	}
}

// language returns what the sandbox calls a language; an unknown one stays as it is.
func language(word string) string {
	if name, known := orchestrator.ParseLanguage(word); known {
		return name
	}
	return word
}

// text returns a string argument. An absent one is "", and a mistake when it is needed.
func (a *arguments) text(name string, needed bool) string {
	var out string
	if a.read(name, "a string", &out) && needed && out == "" {
		a.fail("the argument %q is missing or empty", name)
	}
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
	if _, given := a.values[name]; a.read(name, "a number", &out) && given && out <= 0 {
		a.fail("the argument %q must be a number above 0", name)
		return 0
	}
	return out
}

// read decodes one argument; it reports whether there is no mistake so far.
func (a *arguments) read(name, kind string, into any) bool {
	if a.err != nil {
		return false
	}
	raw, given := a.values[name]
	if !given {
		return true
	}
	// null would leave the zero value behind and pass for a missing argument.
	if err := json.Unmarshal(raw, into); err != nil || bytes.Equal(raw, []byte("null")) {
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

// quote shows a text from outside in a sentence: quoted, escaped and short.
func quote(text string) string {
	const most = 80
	return fmt.Sprintf("%q", truncate.Characters(text, most))
}
