package contained_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Issue 30: a proposal has the directories and hosts that a server's command names, and nothing else.
func TestPropose(t *testing.T) {
	notes, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(notes, "link")
	file := filepath.Join(notes, "file")
	if err := os.Symlink(notes, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	uvx := func(argument string) config.Server {
		return config.Server{Command: "uvx", Args: []string{"server", argument}}
	}
	for name, c := range map[string]struct {
		server   config.Server
		settings any
		left     string
		problem  string
	}{
		"nothing": {config.Server{Command: "npx", Args: []string{"-y", "server"}}, true, "", ""},
		"a directory, and through a link": {
			config.Server{Command: "npx", Args: []string{"server", notes, "--at=" + link}},
			map[string]any{"mounts": []any{notes, map[string]any{"path": notes, "at": link}}}, "", ""},
		"addresses": {config.Server{Command: "uvx", Args: []string{"server", "http://docs.example.com/x"},
			Env: map[string]secret.Value{"URL": secret.New("https://api.example.com"), "PORT": secret.New("443")}},
			map[string]any{"network": []string{"docs.example.com:80", "api.example.com:443"}}, "", ""},
		"a file":         {uvx(file), true, "mount a directory", ""},
		"this machine":   {uvx("http://127.0.0.1:8080"), true, "only names", ""},
		"everything":     {uvx("/"), true, "no mount can be there", ""},
		"no such path":   {uvx("/nowhere/at/all"), true, "", ""},
		"another kind":   {config.Server{Command: "docker", Args: []string{"run"}}, true, "", "docker cannot be"},
		"another option": {config.Server{Command: "npx", Args: []string{"--call", "x"}}, true, "", "--call"},
	} {
		t.Run(name, func(t *testing.T) {
			got := contained.Propose(c.server)
			left := strings.Join(got.Left, "\n")
			if !reflect.DeepEqual(got.Settings(), c.settings) {
				t.Errorf("got the settings %v, want %v", got.Settings(), c.settings)
			}
			if !strings.Contains(left, c.left) || c.left == "" && left != "" {
				t.Errorf("got left %q, want %q", left, c.left)
			}
			if !strings.Contains(got.Problem, c.problem) || c.problem == "" && got.Problem != "" {
				t.Errorf("got the problem %q, want %q", got.Problem, c.problem)
			}
		})
	}
}

// Issue 30: the acts of a trial become directories, writable if something was written, and hosts that were reached.
func TestLearned(t *testing.T) {
	trial := &contained.Trial{Server: "s", Files: []string{"/home/ann", "/srv/data"}, Home: "/home/ann"}
	server := config.Server{ID: "s", Command: "npx", Args: []string{"server"}}
	did := contained.State{
		Reached: []contained.Reached{{Host: "api.example.com:443", Connections: 2},
			{Host: "no.example.com:443", Refused: 1, Reason: "not on the internet"}},
		Files: []contained.Touched{{Path: "/home/ann"}, {Path: "/home/ann/.npmrc"}, {Path: "/home/ann/notes/a"},
			{Path: "/home/ann/notes/deep/b"}, {Path: "/home/ann/out/c", Write: true}, {Path: "/srv/data"}},
	}
	for _, folder := range strings.Fields("a b c d e f g h i") {
		did.Files = append(did.Files, contained.Touched{Path: "/home/ann/many/" + folder + "/file"})
	}
	got := trial.Learned(server, did)
	want := map[string]any{"network": []string{"api.example.com:443"}, "mounts": []any{"/home/ann/many",
		"/home/ann/notes", map[string]any{"path": "/home/ann/out", "writable": true}, "/srv/data"}}
	if !reflect.DeepEqual(got.Settings(), want) {
		t.Errorf("got %v, want %v", got.Settings(), want)
	}
	left := strings.Join(got.Left, "\n")
	if len(got.Left) != 2 || !strings.Contains(left, "no.example.com:443: not on the internet") ||
		!strings.Contains(left, "/home/ann/.npmrc: read") {
		t.Errorf("got %q", got.Left)
	}
	rules := got.Rules()
	if !strings.Contains(rules, `permit (principal == ContainedServer::"s", action == Action::"connect", resource)`) ||
		!strings.Contains(rules, `resource.name == "api.example.com" && resource.port == 443`) {
		t.Errorf("got %s", rules)
	}
	if _, err := egress.ParseHost(got.Network[0].String()); err != nil {
		t.Error(err)
	}
}
