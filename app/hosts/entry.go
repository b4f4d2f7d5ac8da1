package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// Entry is one MCP server of a host's file, translated for Airlock's configuration, including the
// syntax of variables.
type Entry struct {
	Name    string
	Type    string // "stdio", "http", "sse", or empty if command or url determine it
	Command string
	Args    []string
	Env     map[string]string
	Cwd     string
	URL     string
	Headers map[string]string

	// StartTimeout and CallTimeout are the times for a start and for a call, such as "20s"; empty for the default.
	StartTimeout, CallTimeout string

	// Left are keys of the entry that a user may rely on and that Airlock does not import.
	Left []string
	// Stays is why the entry must stay in the host's file, as the second half of a sentence. It is
	// empty if Airlock can import the entry.
	Stays string
}

// Start describes how Airlock would start or reach the server: the command line with the directory
// and the names of the variables, or the address. It may contain secrets.
func (e Entry) Start() string {
	if e.URL != "" {
		return "connects to " + e.URL
	}
	text := "runs " + strings.Join(append([]string{e.Command}, e.Args...), " ")
	if e.Cwd != "" {
		text += ", in " + e.Cwd
	}
	if len(e.Env) > 0 {
		text += ", with " + strings.Join(slices.Sorted(maps.Keys(e.Env)), ", ")
	}
	return text
}

// equal reports whether two entries start or reach the same server in the same way.
func (e Entry) equal(other Entry) bool {
	return e.Type == other.Type && e.Command == other.Command && e.Cwd == other.Cwd && e.URL == other.URL &&
		slices.Equal(e.Args, other.Args) && maps.Equal(e.Env, other.Env) && maps.Equal(e.Headers, other.Headers)
}

// isAirlock reports whether the entry starts Airlock itself.
func (e Entry) isAirlock() bool {
	return strings.TrimSuffix(filepath.Base(e.Command), ".exe") == "airlock" && slices.Contains(e.Args, "mcp")
}

// fields is an entry as decoded from a file of any format.
type fields map[string]any

func (f fields) text(keys ...string) string {
	for _, key := range keys {
		if s, ok := f[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// texts returns a list of texts; numbers and booleans are taken as written.
func (f fields) texts(key string) []string {
	list, _ := f[key].([]any)
	var out []string
	for _, item := range list {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

// mapping returns a mapping of texts to texts.
func (f fields) mapping(keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		values, _ := f[key].(map[string]any)
		for name, value := range values {
			if value != nil {
				out[name] = fmt.Sprint(value)
			}
		}
	}
	return out
}

// flag returns the boolean under key, or fallback if the value is not a boolean.
func (f fields) flag(key string, fallback bool) bool {
	if b, ok := f[key].(bool); ok {
		return b
	}
	return fallback
}

// entry translates an entry of the host's file. It returns false for a server that is disabled or
// built into the host.
func (h Host) entry(name string, f fields, e Environment) (Entry, bool) {
	if f.flag("disabled", false) || !f.flag("enabled", true) {
		return Entry{}, false
	}
	switch h.ID {
	case "opencode":
		f = f.openCode()
	case "zed":
		f = f.zed()
	}
	kind := f.text("type")
	if h.ID == "goose" && !slices.Contains([]string{"stdio", "sse", "streamable_http"}, kind) {
		return Entry{}, false
	}
	entry := Entry{
		Name: name, Type: transport(h, kind, f), Command: f.text("command", "cmd"), Args: f.texts("args"),
		Cwd: f.text("cwd"),
		URL: f.text("httpUrl", "url", "serverUrl", "uri"), Env: f.mapping("env", "envs"),
		Headers: f.mapping("headers", "http_headers"),
		Left:    f.left(), Stays: stays(f),
	}
	entry.timeouts(h, f)
	if request, ok := f["requestInit"].(map[string]any); ok { // Copilot in JetBrains' IDEs
		maps.Copy(entry.Headers, fields(request).mapping("headers"))
	}
	entry.translate(func(text string) string { return h.expand.translate(text) })
	h.references(f, &entry)
	if h.ID == "opencode" && entry.Stays == "" && entry.mentions("{file:") {
		entry.Stays = "it reads a value from a file ({file:…}); write {env:NAME} first"
	}
	entry.project(e)
	if entry.Cwd != "" && !filepath.IsAbs(entry.Cwd) && !strings.HasPrefix(entry.Cwd, "${") && entry.Stays == "" {
		entry.Stays = fmt.Sprintf(
			"its working directory (cwd: %s) is relative to where the host runs; write an absolute path first",
			entry.Cwd)
	}
	if reason := unresolved(entry, e); entry.Stays == "" {
		entry.Stays = reason
	}
	return entry, true
}

// openCode returns an entry of OpenCode with the keys of other hosts: its command has the arguments, too.
func (f fields) openCode() fields {
	out := maps.Clone(f)
	if line, _ := f["command"].([]any); len(line) > 0 {
		out["command"], out["args"] = line[0], line[1:]
	}
	out["env"] = f["environment"]
	if f["oauth"] == false {
		delete(out, "oauth")
	}
	return out
}

// zed returns an entry of Zed with the keys of other hosts: its command may be a mapping.
func (f fields) zed() fields {
	command, ok := f["command"].(map[string]any)
	if !ok {
		return f
	}
	out := maps.Clone(f)
	out["command"], out["args"], out["env"] = command["path"], command["args"], command["env"]
	return out
}

// timeouts sets the times of an entry whose units are known. Others, and those that Airlock's configuration does not
// accept, are not imported.
func (e *Entry) timeouts(h Host, f fields) {
	limit := func(f fields, key, unit string) string {
		limit, err := time.ParseDuration(fmt.Sprint(f[key]) + unit)
		if err != nil || limit < time.Second || limit > time.Hour {
			return ""
		}
		return limit.String()
	}
	switch h.ID {
	case "codex":
		e.StartTimeout = cmp.Or(limit(f, "startup_timeout_sec", "s"), limit(f, "startup_timeout_ms", "ms"))
		e.CallTimeout = limit(f, "tool_timeout_sec", "s")
	case "opencode":
		times, _ := f["timeout"].(map[string]any)
		e.StartTimeout, e.CallTimeout = limit(times, "startup", "ms"), limit(times, "request", "ms")
	case "cline", "goose":
		e.CallTimeout = limit(f, "timeout", "s")
	case "gemini":
		e.CallTimeout = limit(f, "timeout", "ms")
	}
	if f["timeout"] != nil && e.StartTimeout+e.CallTimeout == "" {
		e.Left = append(e.Left, "timeout")
	}
}

// limiting are the keys with which hosts hide tools of a server or run tools without asking.
var limiting = []string{
	"includeTools", "excludeTools", "enabled_tools", "disabled_tools", "disabledTools", "tools", "available_tools",
	"alwaysAllow", "autoApprove", "trust", "sandbox", "sandboxEnabled",
}

// left returns the keys that a user may rely on and that Airlock does not import.
func (f fields) left() []string {
	var keys []string
	for _, key := range limiting {
		switch value := f[key].(type) {
		case nil:
		case bool:
			if value {
				keys = append(keys, key)
			}
		case []any:
			if len(value) > 0 && !slices.Equal(value, []any{"*"}) {
				keys = append(keys, key)
			}
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// isUnsigned reports whether the entry of a remote server has no credentials. The host may sign in
// to such a server by itself.
func (e Entry) isUnsigned() bool {
	u, err := url.Parse(e.URL)
	return err == nil && u.Scheme == "https" && len(e.Headers) == 0 && u.User == nil && u.RawQuery == ""
}

// transport returns the entry's type in Airlock's spelling.
func transport(h Host, kind string, f fields) string {
	switch kind {
	case "sse":
		return "sse"
	case "http", "streamable-http", "streamableHttp", "streamable_http":
		return "http"
	}
	if h.ID == "gemini" && f.text("url") != "" && f.text("httpUrl") == "" {
		return "sse" // what url means to Gemini CLI; its httpUrl is streamable HTTP
	}
	if u, err := url.Parse(f.text("url", "serverUrl", "uri")); err == nil && kind == "" &&
		strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/sse") {
		return "sse" // hosts try both transports
	}
	return ""
}

// stays returns why a server must stay with the host: a feature that only the host has.
func stays(f fields) string {
	switch {
	case f.text("envFile") != "":
		return "it reads its variables from a file (envFile); write ${NAME} under env first"
	case f.text("headersHelper") != "":
		return "the host runs a program for its headers (headersHelper)"
	case f["oauth"] != nil || f["auth"] != nil || f["authProviderType"] != nil:
		return "the host signs in to it (OAuth)"
	case len(f.texts("env_keys")) > 0:
		return "its credentials are in the host's keyring (env_keys); write them to airlock.yaml as keyring:NAME"
	case f.text("command", "cmd") == "" && f.text("httpUrl", "url", "serverUrl", "uri") == "":
		return "it has neither a command nor a url"
	}
	return ""
}

// references adds the variables that Codex lists under separate keys.
func (h Host) references(f fields, entry *Entry) {
	if h.ID != "codex" {
		return
	}
	for _, name := range f.texts("env_vars") {
		entry.Env[name] = "${" + name + "}"
	}
	for header, name := range f.mapping("env_http_headers") {
		entry.Headers[header] = "${" + name + "}"
	}
	if name := f.text("bearer_token_env_var"); name != "" {
		entry.Headers["Authorization"] = "Bearer ${" + name + "}"
	}
}

// translate applies f to every text of the entry that a host may expand.
func (e *Entry) translate(f func(string) string) {
	e.Command, e.URL, e.Cwd = f(e.Command), f(e.URL), f(e.Cwd)
	for i := range e.Args {
		e.Args[i] = f(e.Args[i])
	}
	for _, values := range []map[string]string{e.Env, e.Headers} {
		for name, value := range values {
			values[name] = f(value)
		}
	}
}

// mentions reports whether a text of the entry contains part.
func (e *Entry) mentions(part string) bool {
	found := false
	e.translate(func(text string) string {
		found = found || strings.Contains(text, part)
		return text
	})
	return found
}

// project replaces references to directories by their paths, because Airlock's configuration is in
// another directory.
func (e *Entry) project(env Environment) {
	e.translate(func(text string) string {
		text = strings.ReplaceAll(text, "${workspaceFolder}", env.Directory)
		return strings.ReplaceAll(text, "${userHome}", env.Home)
	})
}

// dollar finds a variable without braces.
var dollar = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// braced finds a variable of OpenCode.
var braced = lazyregexp.New(`\{env:([^{}]+)\}`)

// translate converts a text of the host's file to Airlock's syntax, in which ${X} is a variable,
// $${ a literal ${, and any other $ a plain character.
func (x expansion) translate(text string) string {
	switch x {
	case expandNothing:
		return strings.ReplaceAll(text, "${", "$${")
	case expandEnv:
		return braced.ReplaceAllString(strings.ReplaceAll(text, "${", "$${"), "$${$1}")
	case expandDollar:
		return dollar.ReplaceAllString(text, "${$1}")
	}
	return text
}

// variable matches ${NAME}. Its first group is $ for the literal $${, which is not a variable.
var variable = lazyregexp.New(`(\$?)\$\{([^}]*)\}`)

// variables returns the names of the variables that Airlock expands in the entry, and of those without a default.
func (e Entry) variables() (names, required []string) {
	e.translate(func(text string) string {
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			name, _, hasDefault := strings.Cut(strings.TrimPrefix(found[2], "env:"), ":-")
			if found[1] == "" {
				names = append(names, name)
			}
			if found[1] == "" && !hasDefault {
				required = append(required, name)
			}
		}
		return text
	})
	return names, required
}

// unresolved returns a sentence about a variable of the entry that Airlock could not resolve, or
// "".
func unresolved(entry Entry, e Environment) string {
	reason := ""
	entry.translate(func(text string) string {
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			name, _, hasDefault := strings.Cut(strings.TrimPrefix(found[2], "env:"), ":-")
			switch _, set := e.Lookup(name); {
			case found[1] != "":
			case strings.HasPrefix(found[2], "input:"):
				reason = fmt.Sprintf("the host asks for ${%s} when it starts", found[2])
			case !set && !hasDefault && reason == "":
				reason = fmt.Sprintf("the variable %s is not set here", name)
			}
		}
		return text
	})
	return reason
}
