package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A change of the configuration takes effect while the program serves (issue 27: its own port was taken for a change
// of serve.listen, so every other change was refused).
func TestAChangeTakesEffect(t *testing.T) {
	for name, start := range map[string]func(w *world, stderr io.Writer){
		"--stdio": func(w *world, stderr io.Writer) {
			cmd := w.program("--stdio")
			cmd.Stderr = stderr
			w.connect(&mcp.CommandTransport{Command: cmd})
		},
		"--http": func(w *world, stderr io.Writer) {
			cmd := w.program("--http", "--port", "0")
			cmd.Stderr = stderr
			w.serve(cmd)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lines, stderr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lines.Close(); _ = stderr.Close() })
			start(w, stderr)
			text, err := os.ReadFile(w.config)
			if err != nil {
				t.Fatal(err)
			}
			stricter := strings.Replace(string(text), "db: {allow: [query],", "db: {deny: [query],", 1)
			if err := os.WriteFile(w.config, []byte(stricter), 0o600); err != nil {
				t.Fatal(err)
			}
			for scanner := bufio.NewScanner(lines); scanner.Scan(); {
				line := scanner.Text()
				t.Log(line)
				switch {
				case strings.Contains(line, "changed and in force"):
					return
				case strings.Contains(line, "a change is refused"):
					t.Fatal("the change is refused")
				}
			}
			t.Fatal("the program ended")
		})
	}
}
