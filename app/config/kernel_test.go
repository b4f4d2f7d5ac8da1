package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

func TestKernelSectionsThatCannotWork(t *testing.T) {
	for text, problem := range map[string]string{
		`models: {gpt-4: {model: x}}`:                                       "models.gpt-4 has no url",
		`models: {gpt-4: {url: "https://user:pw@h/v1"}}`:                    "must be http:// or https://",
		`models: {gpt-4: {url: "file:///etc/passwd"}}`:                      "must be http:// or https://",
		`models: {gpt-4: {url: "https://h/v1?key=1"}}`:                      "without a credential",
		`models: {" ": {url: "https://h/v1"}}`:                              "a model has no name",
		`models: {gpt-4: {url: "https://h/v1", keys: x}}`:                   `unknown key "keys"`,
		`models: {gpt-4: {url: "https://h"}, gpt-4: {url: "https://h"}}`:    "appears twice",
		`kernel: {actions: {database_query: {server: db}}}`:                 "needs a server and a tool",
		`kernel: {actions: {file_read: {server: a, tool: b}}}`:              "is an action of the kernel itself",
		`kernel: {actions: {x: {server: a, tool: b, effect: read}}}`:        `unknown key "effect"`,
		`kernel: {fileBytes: 1GiB}`:                                         "kernel.fileBytes",
		`models: {gpt-4: {url: "https://h/v1", timeout: 1ms}}`:              "timeout",
		`kernel: {actions: [database_query]}`:                               "must be a mapping",
		`models: [gpt-4]`:                                                   "must be a mapping",
		`kernel: {actions: {database_query: {server: db, tool: q, sql: }}}`: "has no value",
	} {
		_, err := load(t, text, envOf(nil))
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "pw@") &&
			!strings.Contains(text, "pw@") {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}

// The configurations of docs/kernel.md are read, together.
func TestTheKernelsDocsAreConfigurations(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "kernel.md"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		text.Write(block[1])
	}
	c, err := load(t, text.String(), envOf(nil))
	if err != nil || len(c.Kernel.Models) != 2 || c.Kernel.Actions["database_query"].SQL != "query" ||
		c.Kernel.Actions["send_email"].Tool != "send" {
		t.Errorf("%+v, %v", c, err)
	}
}

// An entry of a host's file that starts Airlock under another name is ignored.
func TestTheKernelIsAirlockItself(t *testing.T) {
	for _, command := range []string{"mcp-kernel-server", "/usr/bin/mcp-kernel-server", "qwed-mcp",
		"mcp-kernel-server.exe"} {
		c, err := loadAs(t, "mcp.json", `{"mcpServers": {"agent-os-kernel": {"command": "`+command+
			`", "args": ["--stdio"]}}}`, envOf(nil))
		if err != nil || len(c.Servers) != 0 || len(Lint(c)) != 1 {
			t.Errorf("%s: %+v, %v", command, c, err)
		}
	}
}
