package hosts_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/hosts"
)

// put writes a host's file for all projects and returns its path.
func put(t *testing.T, e hosts.Environment, id, content string) string {
	t.Helper()
	host, _ := hosts.Find(id)
	path := host.UserFile(e)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A byte order mark and the line ends of Windows stay, in every format, also when
// init is undone after the file was changed.
func TestMarksAndLineEndsStay(t *testing.T) {
	for id, text := range map[string]string{
		"cursor": "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",\n      \"args\": [\"1\"]},\n   " +
			" \"b\": {\"url\": \"https://x.example\"}\n  },\n  \"theme\": \"dark\"\n}\n",
		"codex": "# mine\ntheme = \"dark\"\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.b]\nurl = " +
			"\"https://x.example\"\n",
		"goose": "# mine\ntheme: dark\nextensions:\n  a:\n    type: stdio\n    cmd: x\n    args:\n    - one\n  b:\n  " +
			"  type: sse\n    uri: https://x.example\n",
	} {
		t.Run(id, func(t *testing.T) {
			e := home(t)
			before := "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")
			path := put(t, e, id, before)
			record := filepath.Join(e.Home, "hosts.json")
			check := func(want string) []byte {
				t.Helper()
				after, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(after, []byte("\ufeff")) ||
					bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) ||
					!bytes.Contains(after, []byte(want)) {
					t.Errorf("got %q, want the mark, the line ends and %s", after, want)
				}
				return after
			}
			if err := plan(t, e).Apply(record, validate); err != nil {
				t.Fatal(err)
			}
			after := check("/usr/local/bin/airlock")
			if undone, err := hosts.Undo(record); err != nil || len(undone) != 1 || undone[0].How != "restored" {
				t.Fatalf("got %v, %v, want the file restored", undone, err)
			}
			if got, _ := os.ReadFile(path); string(got) != before {
				t.Errorf("after undo: got %q, want %q", got, before)
			}

			if err := plan(t, e).Apply(record, validate); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.Replace(after, []byte("dark"), []byte("light"), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			if undone, err := hosts.Undo(record); err != nil || len(undone) != 1 || undone[0].How != "edited" {
				t.Fatalf("got %v, %v, want the file edited", undone, err)
			}
			if got := string(check("light")); strings.Contains(got, "/usr/local/bin/airlock") ||
				!strings.Contains(got, "x.example") {
				t.Errorf("after undo: got %q, want the servers back", got)
			}
		})
	}
}

// The plan names the settings that Airlock does not import, before anything is moved.
func TestWhatIsNotTakenOverIsSaid(t *testing.T) {
	e := home(t)
	put(t, e, "gemini", `{"mcpServers": {
		"limited": {"command": "x", "includeTools": ["a"], "trust": true, "timeout": 5},
		"open": {"command": "x", "includeTools": [], "trust": false},
		"there": {"command": "x", "cwd": "./sub"}
	}}`)
	put(t, e, "cursor", `{"mcpServers": {
		"events": {"url": "http://127.0.0.1:9/sse"},
		"plain": {"url": "https://x.example/mcp"},
		"signed": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer x"}}
	}}`)
	put(t, e, "claude-code",
		`{"projects": {"/p": {"mcpServers": {"db": {"command": "x"}, "airlock": {"command": "airlock", "args": `+
			`["mcp"]}}}}, "mcpServers": {"a": {"command": "y"}}}`)
	p := plan(t, e)
	got := map[string]string{}
	for _, imported := range p.Imports {
		got[imported.Entry.Name] = fmt.Sprintf("%s%v%v", imported.Entry.Type, imported.Entry.Left, imported.Unsigned)
	}
	for name, want := range map[string]string{
		"limited": "[includeTools trust timeout]false", "open": "[]false", "events": "sse[]false", "plain": "[]true",
		"signed": "[]false",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	for _, change := range p.Changes {
		switch change.File.Host.ID {
		case "gemini":
			if len(change.Stay) != 1 || !strings.Contains(change.Stay[0].Stays, "relative to where the host runs") {
				t.Errorf("got %v, want that one server stays because of its directory", change.Stay)
			}
		case "claude-code":
			if fmt.Sprint(change.File.Elsewhere) != "[/p: db]" {
				t.Errorf("got %q, want the project's server", change.File.Elsewhere)
			}
		}
	}
}

// A file that cannot be restored does not prevent others from being restored, and Undo can be
// repeated for it.
func TestUndoGoesOn(t *testing.T) {
	e := home(t, "vscode", "codex", "cursor", "gemini")
	record := filepath.Join(t.TempDir(), "hosts.json")
	if err := plan(t, e).Apply(record, validate); err != nil {
		t.Fatal(err)
	}
	host := func(id string) string {
		h, _ := hosts.Find(id)
		return h.UserFile(e)
	}
	if err := os.Remove(host("codex")); err != nil {
		t.Fatal(err)
	}
	broken, err := os.ReadFile(host("cursor"))
	if err == nil {
		err = os.WriteFile(host("cursor"), []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	undone, err := hosts.Undo(record)
	if err == nil || !strings.Contains(err.Error(), ".cursor/mcp.json: not valid JSON") || len(undone) != 3 {
		t.Fatalf("got %v, %v, want three files done and one that is not", undone, err)
	}
	for _, file := range undone {
		want := "restored"
		if file.Path == host("codex") {
			want = "gone since, its backup is " + host("codex") + ".before-airlock"
		}
		if file.How != want {
			t.Errorf("%s: got %q, want %q", file.Path, file.How, want)
		}
	}
	if err := os.WriteFile(host("cursor"), broken, 0o600); err != nil {
		t.Fatal(err)
	}
	if undone, err := hosts.Undo(record); err != nil || len(undone) != 1 || undone[0].How != "restored" {
		t.Errorf("a second time: got %v, %v, want the last file restored", undone, err)
	}
	if undone, err := hosts.Undo(record); err != nil || len(undone) != 0 {
		t.Errorf("a third time: got %v, %v, want nothing", undone, err)
	}
}
