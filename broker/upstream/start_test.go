package upstream_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
)

func TestProblemsOfMissingServers(t *testing.T) {
	config := func(mode string, change func(*upstream.Config)) upstream.Config {
		c, _ := upstreamtest.Fake(t, mode)
		if change != nil {
			change(&c)
		}
		return c
	}
	soon := func(c *upstream.Config) { c.StartTimeout = 600 * time.Millisecond }
	// Long enough for a program to start and to print a line, on any machine.
	later := func(c *upstream.Config) { c.StartTimeout = 8 * time.Second }
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	nonsense := filepath.Join(t.TempDir(), "nonsense")
	if err := os.WriteFile(nonsense, []byte("\x7fELF nonsense"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nowhere/python9 -u\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		config upstream.Config
		reason error
		want   string
	}{
		{"no such command", upstream.Config{ID: "x", Command: "airlock-no-such-command"}, upstream.ErrCommandNotFound,
			`the command "airlock-no-such-command" was not found`},
		{"no such path", upstream.Config{ID: "x", Command: "./nowhere/server"}, upstream.ErrCommandNotFound,
			`the command "./nowhere/server" was not found`},
		{"not in its own PATH",
			config("good", func(c *upstream.Config) { c.Command, c.Env = "sh", map[string]string{"PATH": "/nowhere"} }),
			upstream.ErrCommandNotFound, `the command "sh" was not found`},
		{"not executable", upstream.Config{ID: "x", Command: plain}, upstream.ErrNotStarted,
			"could not be started: it is not executable (chmod +x makes it so)"},
		{"a directory", upstream.Config{ID: "x", Command: filepath.Dir(plain)}, upstream.ErrNotStarted,
			"could not be started: it is a directory"},
		{"a script without its interpreter", upstream.Config{ID: "x", Command: script}, upstream.ErrNotStarted,
			`the command ".../script" cannot run: its first line names ".../python9", which was not found`},
		{"no program", upstream.Config{ID: "x", Command: nonsense}, upstream.ErrNotStarted,
			"could not be started: exec format error"},
		{"no such directory", config("good", func(c *upstream.Config) { c.Dir = "/nowhere/at/all" }),
			upstream.ErrNoDirectory,
			`its working directory ".../all" does not exist`},
		{"exits at once", config("exit", nil), upstream.ErrExited,
			`it exited with status 3 before it was ready; it said "fatal: no such database"`},
		{"what it said holds its credential", config(
			"exit-secret", func(c *upstream.Config) { c.Env = map[string]string{"SECRET": "hunter22"} }),
			upstream.ErrExited, `it exited with status 3 before it was ready; it said "cannot log in with [redacted]"`},
		{"never answers", config("silent", soon), upstream.ErrNoAnswer, "it did not answer within 600ms"},
		{"does not even read", config("deaf", soon), upstream.ErrNoAnswer, "it did not answer within 600ms"},
		{"prints something else", config("only-rubbish", later), upstream.ErrNotMCP,
			`it did not answer within 8s; it printed "Listening on port 8080" on stdout, which is not MCP`},
		{"refuses the handshake", config("refusing", nil), upstream.ErrNotMCP,
			`the handshake failed: "license expired"`},
		{"answers the handshake with something else", config("misshapen", nil), upstream.ErrNotMCP,
			`the handshake failed: "an answer does not have the form that MCP requires"`},
		{"a list of the wrong shape", config("bad-list", nil), upstream.ErrNotMCP,
			"its tool list cannot be read: a page does not have the form that MCP requires"},
		{"a list without measure", config("huge-list", nil), upstream.ErrNotMCP,
			"its tool list cannot be read: a page is larger than 16711680 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			good, _ := upstreamtest.Fake(t, "good")
			test.config.ID = "bad"
			set := connect(t, nil, test.config, good)
			servers := set.Servers()
			if len(servers) != 2 || len(servers[1].Tools) == 0 {
				t.Errorf("got %+v for the good server, want tools", servers)
			}
			if got := servers[0].Problem; !strings.Contains(got, test.want) {
				t.Errorf("got problem %q, want %q in it", got, test.want)
			}
			err := set.Problem(test.config.ID)
			var start *upstream.StartError
			if !errors.As(err, &start) || !errors.Is(err, test.reason) {
				t.Fatalf("got %v, want a StartError that is %v", err, test.reason)
			}
			var failed *upstream.CallError
			if _, err := set.Call(t.Context(), test.config.ID, "echo", nil); !errors.As(err, &failed) ||
				failed.Type != upstream.TransientNetwork {
				t.Errorf("a call: got %v, want TransientNetwork", err)
			}
		})
	}
}

func TestServersThatWorkAfterAll(t *testing.T) {
	tests := []struct {
		mode   string
		tools  int
		starts int
	}{
		{"rubbish", 16, 1},     // other output between the messages is skipped
		{"huge-line", 16, 1},   // and so is a line without measure
		{"strict", 16, 2},      // exits at server/discover, and is started again without
		{"ignoring", 16, 1},    // never answers server/discover, and gets initialize
		{"late", 16, 1},        // takes its time, and is not ended for it
		{"late-modern", 16, 2}, // the same; initialize was wrong then
		{"modern", 16, 1},      // refuses initialize
		{"no-list", 0, 1},      // has no tools, which is not a problem
		{"wrong-types", 1, 1},  // one usable item among ten
		{"three-pages", 3, 1},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			config, notes := upstreamtest.Fake(t, test.mode)
			if test.mode == "ignoring" || strings.HasPrefix(test.mode, "late") {
				config.StartTimeout = 10 * time.Second // it gets initialize after half of it
			}
			set := connect(t, nil, config)
			if got := names(t, set); len(got) != test.tools {
				t.Errorf("got %d tools %v, want %d (%+v)", len(got), got, test.tools, set.Problem(test.mode))
			}
			if got := notes.Lines(t, "started"); len(got) != test.starts {
				t.Errorf("got %q, want %d starts", got, test.starts)
			}
			if test.tools == 16 {
				if _, err := set.Call(t.Context(), test.mode, "echo", nil); err != nil {
					t.Errorf("a call: got %v, want none", err)
				}
			}
		})
	}
}

// declaredAlways is what Airlock declares to a server that may not ask people.
const declaredAlways = `apabilities":{"extensions":{"io.modelcontextprotocol/tasks":{},` +
	`"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

func TestBothErasDeclareTasksAndApps(t *testing.T) {
	_, notes := fake(t, "modern")
	said := notes.Lines(t, "discover")
	if len(said) != 1 || !strings.Contains(said[0], declaredAlways) {
		t.Errorf("got %q, want tasks and apps declared", said)
	}
}

func TestListsWithoutEndAreCut(t *testing.T) {
	tests := []struct {
		mode    string
		tools   int
		warning string
	}{
		{"looping", 2, "the tool list is cut: after 2 pages the server began again"},
		{"endless", 200, "the tool list is cut: it has more than 200 pages"},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			set, _ := fake(t, test.mode)
			server := set.Servers()[0]
			if len(server.Tools) != test.tools {
				t.Errorf("got %d tools, want %d", len(server.Tools), test.tools)
			}
			if diff := cmp.Diff([]string{test.warning}, server.Warnings); diff != "" {
				t.Errorf("warnings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnusableItemsAreNamed(t *testing.T) {
	set, _ := fake(t, "wrong-types")
	server := set.Servers()[0]
	if len(server.Tools) != 1 || server.Tools[0].Name != "echo" {
		t.Errorf("got tools %v, want echo", server.Tools)
	}
	want := []string{
		"item 1 of the tool list is left out: the definition is null, not an object",
		"item 2 of the tool list is left out: the definition is a number, not an object",
		"item 3 of the tool list is left out: the definition is text, not an object",
		"item 4 of the tool list is left out: the definition is a list, not an object",
		"item 5 of the tool list is left out: name is missing, not text",
		"item 6 of the tool list is left out: name is a number, not text",
		`tool "bad name" is left out: name contains ' '; allowed are _, -, ., letters and digits`,
		`tool "no_schema" is left out: inputSchema is missing, not an object`,
		`tool "text_schema" is left out: inputSchema is text, not an object`,
	}
	if diff := cmp.Diff(want, server.Warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}

// Servers that answer only when all of them have started are not there if they start one
// after the other.
func TestServersStartAtTheSameTime(t *testing.T) {
	together, _ := upstreamtest.Fake(t, "together")
	var configs []upstream.Config
	for _, id := range []string{"a", "b", "c", "d"} {
		config := together
		config.ID = id
		configs = append(configs, config)
	}
	for _, server := range connect(t, nil, configs...).Servers() {
		if len(server.Tools) == 0 {
			t.Errorf("%s: %s", server.ID, server.Problem)
		}
	}
}
