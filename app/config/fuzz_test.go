package config

import (
	"errors"
	"os"
	"testing"
)

// Any file gives a configuration with valid values or an error with a message, and never
// panics.
func FuzzConfig(f *testing.F) {
	for _, file := range hostFilesOf(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("sandbox: {memory: 1GiB, cpus: .5, timeout: 1h}\nlimits: &l {profile: wide}\naudit: *l"))
	f.Add([]byte("mcpServers: {a: {command: '${A:-b}$${c}', args: [1, yes, ~]}}"))
	f.Add([]byte("? [a]\n: !!binary x\n<<: *x\n%TAG ! x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &decoder{file: "fuzz.yaml", dir: "/", env: envOf(map[string]string{"A": "x"}), left: map[string]bool{}}
		c, err := d.config(data)
		if err != nil {
			var ce *Error
			if !errors.As(err, &ce) || ce.Message == "" {
				t.Fatalf("got %v, want an *Error with a message", err)
			}
			return
		}
		if s := c.Sandbox; s.Memory < 64<<20 || !(s.CPUs > 0) || s.PIDs < 8 || s.Timeout <= 0 ||
			s.Pool > s.MaxSandboxes {
			t.Fatalf("got %+v, want every limit within its bounds", s)
		}
		for _, s := range c.Servers {
			if (s.Command == "") == (s.URL == "") {
				t.Fatalf("got server %q with command %q and url %q, want one of the two", s.ID, s.Command, s.URL)
			}
		}
		Lint(c)
	})
}
