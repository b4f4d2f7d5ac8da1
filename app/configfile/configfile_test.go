package configfile_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/app/configfile"
)

// of returns an environment with these variables.
func of(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(parts ...string) string {
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	here := write("here", "airlock.yaml")
	xdg := write("xdg", "airlock", "airlock.yaml")
	home := write("home", ".config", "airlock", "airlock.yaml")
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }

	for name, c := range map[string]struct {
		dir  string
		env  map[string]string
		want string
	}{
		"the variable wins": {at("here"),
			map[string]string{"AIRLOCK_CONFIG": "/no/such.yaml", "XDG_CONFIG_HOME": at("xdg")}, "/no/such.yaml"},
		"then the directory": {at("here"), map[string]string{"XDG_CONFIG_HOME": at("xdg")}, here},
		"then the user's": {at("empty"),
			map[string]string{"XDG_CONFIG_HOME": at("xdg"), "HOME": at("home")}, xdg},
		"then its default": {at("empty"), map[string]string{"HOME": at("home")}, home},
		"a relative place is ignored": {at("empty"), map[string]string{"XDG_CONFIG_HOME": "xdg", "HOME": at("home")},
			home},
		"nothing: the built-in is used": {at("empty"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := configfile.Find(c.dir, of(c.env)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A file's digest changes with all that config.Load could make something else of.
func TestDigestsTellReadingsApart(t *testing.T) {
	const text = "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", B: \"${B:-b}\", H: \"${userHome}\", E: " +
		"\"${env:E}\"}}}\n"
	same := map[string]string{"SECRET": "one", "HOME": "/h", "E": "", "OTHER": "x"}
	changed := func(name, value string) map[string]string {
		others := map[string]string{}
		maps.Copy(others, same)
		others[name] = value
		if value == "unset" {
			delete(others, name)
		}
		return others
	}
	want := configfile.Digest("/a/airlock.yaml", []byte(text), of(same))
	if got := configfile.Digest("/a/airlock.yaml", []byte(text), of(changed("OTHER", "y"))); got != want {
		t.Error("a variable that the file does not name: got another digest")
	}
	for name, got := range map[string]string{
		"another place": configfile.Digest("/b/airlock.yaml", []byte(text), of(same)),
		"another text":  configfile.Digest("/a/airlock.yaml", []byte(text+"#"), of(same)),
		"another value": configfile.Digest("/a/airlock.yaml", []byte(text), of(changed("SECRET", "two"))),
		"no value": configfile.Digest(
			"/a/airlock.yaml", []byte(text), of(changed("SECRET", "unset"))),
		"a value in place of none":   configfile.Digest("/a/airlock.yaml", []byte(text), of(changed("B", ""))),
		"another home":               configfile.Digest("/a/airlock.yaml", []byte(text), of(changed("HOME", "/g"))),
		"none in place of an empty":  configfile.Digest("/a/airlock.yaml", []byte(text), of(changed("E", "unset"))),
		"the built-in configuration": configfile.Digest("", nil, of(same)),
		"values the other way around": configfile.Digest(
			"/a/airlock.yaml", []byte(text), of(map[string]string{"SECRET": "/h", "HOME": "one", "E": ""})),
	} {
		if got == want {
			t.Errorf("%s: got the same digest", name)
		}
	}
}

func TestVariables(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             nil,
		"a: ${B}, c: ${A:-x}, d: ${B}": {"A", "B"},
		"${env:A}${userHome}":          {"A", "HOME"},
		"$${A} $A ${A":                 {"A"},
		"${unclosed ${A} and ${}":      {"", "A", "unclosed ${A"},
		"${A:-${B}}":                   {"A", "B"},
	} {
		if got := configfile.Variables([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
