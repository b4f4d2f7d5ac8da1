package config

import (
	"os"
	"path/filepath"
	"testing"
)

// A digest changes with everything that a host could notice, and with nothing else.
func TestDigestsTellConfigurationsApart(t *testing.T) {
	const base = "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", B: c}}}\nservers: {a: {deny: [y]}}\n"
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	load := func(text, secret string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, func(name string) (string, bool) { return secret, name == "SECRET" })
		if err != nil {
			t.Fatal(err)
		}
		return Digest(c)
	}
	want := load(base, "one")
	for range 10 { // maps have no order
		if got := load(base, "one"); got != want {
			t.Fatal("two readings of one file differ")
		}
	}
	for name, same := range map[string]string{"where it is served": base + "serve: {listen: \"127.0.0.1:1\"}\n",
		"a comment at the end": base + "# more\n"} {
		if got := load(same, "one"); got != want {
			t.Errorf("%s: got another digest", name)
		}
	}
	for name, other := range map[string]string{
		"a limit": base + "limits: {calls: 7}\n", "a policy": base + "policies: [p.cedar]\n",
		"a setting": base + "face: {callTool: true}\n",
		"another command": "mcpServers: {a: {command: z, env: {KEY: \"${SECRET}\", B: c}}}\n" +
			"servers: {a: {deny: [y]}}\n",
		"a denied tool": "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", B: c}}}\n" +
			"servers: {a: {deny: [q]}}\n",
		"names and values": "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", Bc: \"\"}}}\n" +
			"servers: {a: {deny: [y]}}\n",
		"one server more": "mcpServers: {b: {command: x}, a: {command: x, env: {KEY: \"${SECRET}\", B: " +
			"c}}}\nservers: {a: {deny: [y]}}\n",
		"an agent's prices": base + "agents: {defaultPrice: 0.01}\n",
	} {
		if got := load(other, "one"); got == want {
			t.Errorf("%s: got the same digest", name)
		}
	}
	if got := load(base, "two"); got == want {
		t.Error("another credential: got the same digest")
	}
}

// Source is equal if one file is read twice in one environment. It is empty if YAML composes
// the name of a variable.
func TestSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	load := func(text string, env func(string) (string, bool)) *Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, env)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	set := func(string) (string, bool) { return "x", true }
	const plain = "mcpServers: {a: {command: \"${A}\", env: {K: \"${env:B}${C:-d}${userHome}${workspaceFolder}\"}}}\n"
	if got, want := load(plain, set).Source(), load(plain, set).Source(); got != want || got == "" {
		t.Errorf("got %q and %q, want the same of two readings", got, want)
	}
	if got := load(plain, envOf(map[string]string{"A": "x", "B": "y", "HOME": "x"})).Source(); got == load(
		plain, set).Source() {
		t.Error("other values: got the same")
	}
	for _, text := range []string{
		"mcpServers: {a: {command: \"\\x24{A}\"}}\n", "mcpServers: {a: {command: \"${\\x41}\"}}\n",
		"mcpServers: {a: {command: \"$\\\n  {A}\"}}\n",
	} {
		c := load(text, set)
		if got := c.Source(); got != "" || c.Servers[0].Command != "x" {
			t.Errorf("%s: got %q and the command %q, want nothing and x", text, got, c.Servers[0].Command)
		}
	}
	c, err := Load("", set)
	if err != nil || c.Source() == "" {
		t.Errorf("the built-in configuration: got %q, %v", c.Source(), err)
	}
}

// Comments, positions and the order of servers do not change the meaning of a configuration.
func TestSameMeaning(t *testing.T) {
	const base = "mcpServers: {a: {command: x}, b: {command: y}}\n"
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	load := func(text string) *Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := load(base)
	for text, want := range map[string]bool{
		base: true, "# a comment\n\n" + base: true, "mcpServers:\n  a:   {command: 'x'}\n  b: {command: y}\n": true,
		"mcpServers: {b: {command: y}, a: {command: x}}\n": true, base + "serve: {drainTime: 7s}\n": false,
		base + "limits: {calls: 7}\n":                                 false,
		"mcpServers: {a: {command: x, args: [y]}, b: {command: y}}\n": false,
	} {
		if got := SameMeaning(before, load(text)); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
