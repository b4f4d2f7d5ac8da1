package code

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// aliases maps other names that models give arguments, in lower case and without separators,
// to the names that they may mean. The first one that the tool has is used.
var aliases = map[string][]string{
	"q": {"query"}, "queries": {"query"}, "search": {"query"}, "searchquery": {"query"}, "keyword": {"query"},
	"keywords": {"query"},
	"text":     {"query", "code"}, "prompt": {"query"}, "task": {"query"}, "description": {"query"},
	"pattern":  {"query"},
	"toolname": {"name", "query", "tool"}, "tool": {"name", "query"}, "name": {"query", "tool"},
	"tools": {"name", "query"}, "toolnames": {"name"},
	"names": {"name"}, "function": {"name", "tool"}, "functionname": {"name"}, "toolid": {"name"}, "method": {"name"},
	"server": {"serverId"}, "serverid": {"server"}, "servername": {"serverId", "server"}, "servers": {"serverId"},
	"mcpserver": {"serverId"},
	"topk":      {"limit"}, "k": {"limit"}, "n": {"limit"}, "max": {"limit"}, "maxresults": {"limit"},
	"count": {"limit"}, "top": {"limit"},
	"size": {"limit"}, "pagesize": {"limit"}, "skip": {"offset"}, "start": {"offset"}, "detaillevel": {"detail"},
	"verbosity": {"detail"},
	"lang":      {"language"}, "runtime": {"language"}, "kernel": {"language"}, "interpreter": {"language"},
	"program": {"code"}, "script": {"code"}, "source": {"code"}, "sourcecode": {"code"}, "snippet": {"code"},
	"codesnippet": {"code"},
	"command":     {"code"}, "cmd": {"code"}, "content": {"code"}, "input": {"code", "arguments"}, "body": {"code"},
	"args": {"arguments"}, "params": {"arguments"}, "parameters": {"arguments"}, "toolinput": {"arguments"},
	"toolargs": {"arguments"}, "toolarguments": {"arguments"},
	"async": {"background"}, "runinbackground": {"background"}, "isbackground": {"background"},
	"id": {"run_id", "name"}, "run": {"run_id"},
}

// wrappers are names under which models pass all arguments together.
var wrappers = []string{"input", "arguments", "args", "params", "parameters", "kwargs", "request", "payload", "data"}

// plain returns a name in lower case and without separators.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// unwrapped returns the arguments inside a wrapper object such as
// {"arguments": {"query": "x"}}.
func unwrapped(values map[string]json.RawMessage, known []string) map[string]json.RawMessage {
	if len(values) != 1 {
		return values
	}
	for name, raw := range values {
		var inner map[string]json.RawMessage
		if !slices.Contains(known, name) && slices.Contains(wrappers, plain(name)) &&
			strictjson.UnmarshalOpen(raw, &inner) == nil && inner != nil {
			return inner
		}
	}
	return values
}

// resolveAliases renames arguments to the names that the tool has. If an argument is given
// under two names with different values, the alias is kept and later refused as unknown.
func resolveAliases(values map[string]json.RawMessage, known []string) {
	if slices.Contains(known, "code") {
		splitLanguages(values)
	}
	if slices.Contains(known, "timeout_seconds") {
		resolveTimeout(values)
	}
	for _, alias := range slices.Sorted(maps.Keys(values)) {
		name := meant(plain(alias), known)
		if name == "" || slices.Contains(known, alias) {
			continue
		}
		if other, both := values[name]; !both || bytes.Equal(other, values[alias]) {
			values[name] = values[alias]
			delete(values, alias)
		}
	}
	for name, raw := range values {
		values[name] = joined(raw)
	}
}

// meant returns the known argument that a plain name means, or "".
func meant(name string, known []string) string {
	for _, k := range known {
		if plain(k) == name {
			return k
		}
	}
	for _, k := range aliases[name] {
		if slices.Contains(known, k) {
			return k
		}
	}
	return ""
}

// joined joins a list of strings: lines of a program, words of a search, or the only tool of a
// list. Other values are returned unchanged.
func joined(raw json.RawMessage) json.RawMessage {
	var parts []string
	if strictjson.UnmarshalOpen(raw, &parts) != nil || len(parts) == 0 {
		return raw
	}
	text, err := json.Marshal(strings.Join(parts, "\n"))
	if err != nil {
		return raw
	}
	return text
}

// splitLanguages handles code that is given under the name of its language, as in
// {"python": "…"} and {"code": {"python": "…"}}.
func splitLanguages(values map[string]json.RawMessage) {
	from := values
	if raw, given := values["code"]; given {
		var inner map[string]json.RawMessage
		if strictjson.UnmarshalOpen(raw, &inner) != nil || len(inner) != 1 {
			return
		}
		from = inner
	}
	for name, raw := range from {
		word, known := program.ParseLanguage(name)
		if !known {
			continue
		}
		delete(from, name)
		values["code"] = raw
		if _, given := values["language"]; !given {
			values["language"] = json.RawMessage(strconv.Quote(word))
		}
		return
	}
}

// timeouts maps plain names of the time limit to the seconds of their unit, or 0 if the name
// has no unit.
var timeouts = map[string]float64{
	"timeout": 0, "timelimit": 0, "maxtime": 0, "timeoutsecs": 1, "timeoutsec": 1, "timeouts": 1, "timeoutinseconds": 1,
	"timeoutms": 1e-3, "timeoutmillis": 1e-3, "timeoutmilliseconds": 1e-3, "timeoutinms": 1e-3,
}

// msFrom is the smallest number that means milliseconds if a time has no unit.
const msFrom = 1000

// resolveTimeout converts a time limit with another name or unit to timeout_seconds.
func resolveTimeout(values map[string]json.RawMessage) {
	if _, given := values["timeout_seconds"]; given {
		return
	}
	for name, raw := range values {
		unit, known := timeouts[plain(name)]
		if !known {
			continue
		}
		seconds, ok := secondsOf(raw, unit)
		if !ok {
			continue // it is refused as an unknown argument
		}
		delete(values, name)
		values["timeout_seconds"] = strconv.AppendFloat(nil, seconds, 'g', -1, 64)
		return
	}
}

// secondsOf reads a time: a number of units, or a text such as "5", "5s" or "500 ms".
func secondsOf(raw json.RawMessage, unit float64) (float64, bool) {
	text := string(raw)
	if strictjson.UnmarshalOpen(raw, &text) != nil {
		text = string(raw)
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil:
		length, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		return length.Seconds(), err == nil
	case unit != 0:
		return number * unit, true
	case number >= msFrom:
		return number / 1000, true
	}
	return number, true
}
