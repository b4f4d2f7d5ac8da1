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
	for name, same := range map[string]string{"where it is served": base + "serve: {listen: \"127.0.0.1:1\"}\n", "a comment at the end": base + "# more\n"} {
		if got := load(same, "one"); got != want {
			t.Errorf("%s: got another digest", name)
		}
	}
	for name, other := range map[string]string{
		"a limit": base + "limits: {calls: 7}\n", "a policy": base + "policies: [p.cedar]\n", "a setting": base + "face: {callTool: true}\n",
		"another command":   "mcpServers: {a: {command: z, env: {KEY: \"${SECRET}\", B: c}}}\nservers: {a: {deny: [y]}}\n",
		"a denied tool":     "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", B: c}}}\nservers: {a: {deny: [q]}}\n",
		"names and values":  "mcpServers: {a: {command: x, env: {KEY: \"${SECRET}\", Bc: \"\"}}}\nservers: {a: {deny: [y]}}\n",
		"one server more":   "mcpServers: {b: {command: x}, a: {command: x, env: {KEY: \"${SECRET}\", B: c}}}\nservers: {a: {deny: [y]}}\n",
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
