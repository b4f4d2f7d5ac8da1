package hosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/internal/golden"
)

var command = hosts.Command{
	Path: "/usr/local/bin/airlock", Args: []string{"mcp", "--config", "/home/ann/.config/airlock/airlock.yaml"},
	Env: map[string]string{"AIRLOCK_HOME": "/home/ann/airlock"}, CallTime: config.Default().CallTime(),
}

// variables are the environment variables of the tests.
var variables = map[string]string{"HOME": "/home/ann", "GITHUB_TOKEN": "x", "DATABASE_URL": "x", "NOTION_TOKEN": "x",
	"FIGMA_TOKEN": "x"}

func lookup(name string) (string, bool) {
	value, set := variables[name]
	return value, set
}

// home copies the directories "in" of testdata to a new home directory for the test.
func home(t *testing.T, names ...string) hosts.Environment {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name, "in"))); err != nil {
			t.Fatal(err)
		}
	}
	return hosts.Environment{Home: dir, Directory: filepath.Join(dir, "project"), Lookup: lookup}
}

// files returns the content of every file below dir.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// validate checks a new configuration like the command line.
func validate(path string) error {
	_, err := config.Load(path, lookup)
	return err
}

// plan makes a plan for the named hosts, or for all that have files.
func plan(t *testing.T, e hosts.Environment, ids ...string) *hosts.Plan {
	t.Helper()
	found, err := hosts.Look(e, ids, false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(e.Home, "airlock.yaml")
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	p, err := hosts.NewPlan(found, path, before, command)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEveryHostsFile compares each host's file after init, and the configuration made from it, with
// testdata/HOST/want. Then it undoes init.
func TestEveryHostsFile(t *testing.T) {
	for _, host := range hosts.All() {
		t.Run(host.ID, func(t *testing.T) {
			e := home(t, host.ID)
			before := files(t, e.Home)
			if len(before) != 1 {
				t.Fatalf("testdata has %d files for %s, want 1", len(before), host.ID)
			}
			record := filepath.Join(t.TempDir(), "hosts.json")
			p := plan(t, e)
			if err := p.Apply(record, validate); err != nil {
				t.Fatal(err)
			}
			got := files(t, e.Home)
			for path := range before {
				backup := path + ".before-airlock"
				if string(got[backup]) != string(before[path]) {
					t.Errorf("the backup %s differs from the file as it was", backup)
				}
				delete(got, backup)
			}
			got["plan"] = []byte(describe(p))
			golden.CheckDir(t, got, filepath.Join("testdata", host.ID, "want"))

			undone, err := hosts.Undo(record)
			if err != nil || len(undone) != 1 || undone[0].How != "restored" {
				t.Fatalf("undo: got %v, %v, want one file restored", undone, err)
			}
			after := files(t, e.Home)
			delete(after, "airlock.yaml")
			for path := range after {
				if string(after[path]) != string(before[path]) {
					t.Errorf("after undo, %s is not what it was", path)
				}
			}
		})
	}
}

func describe(p *hosts.Plan) string {
	var out strings.Builder
	for _, imported := range p.Imports {
		fmt.Fprintf(&out, "import %s\n", imported.Entry.Name)
	}
	for _, change := range p.Changes {
		for _, stays := range change.Stay {
			fmt.Fprintf(&out, "%s stays: %s\n", stays.Name, stays.Stays)
		}
	}
	return out.String()
}

func TestServersOfAllHostsMeetInOneFile(t *testing.T) {
	e := home(t, "claude-code", "claude-desktop", "codex", "copilot-cli", "cursor", "gemini", "goose", "vscode")
	p := plan(t, e)
	if err := p.Apply(filepath.Join(e.Home, "hosts.json"), validate); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(p.Config, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Servers) != len(p.Imports) || len(p.Changes) != 6 {
		t.Errorf("got %d servers from %d files, want %d from 6", len(c.Servers), len(p.Changes), len(p.Imports))
	}
	// Claude Desktop and Goose pass no variables on, so that Airlock would not start there (issue 27).
	for _, file := range p.Skipped {
		if !strings.Contains(fmt.Sprint(file.Err), "so Airlock would not start there") {
			t.Errorf("%s: got %v", file.Path, file.Err)
		}
	}
	names := map[string]string{}
	for _, imported := range p.Imports {
		names[imported.Entry.Name] = imported.Was
	}
	// VS Code's server of that name has other arguments than Copilot CLI's; its filesystem is Claude Code's.
	if was, ok := names["playwright-vscode"]; !ok || was != "playwright" {
		t.Errorf("two servers with one name: got %v, want playwright and playwright-vscode", names)
	}
	if _, twice := names["filesystem-vscode"]; twice {
		t.Errorf("one server that two hosts have was imported twice: %v", names)
	}
	if again := plan(t, e); len(again.Imports) != 0 || len(again.Changes) != 0 {
		t.Errorf("a second init would import %v and change %d files, want nothing", again.Imports, len(again.Changes))
	}
}

func TestUndoKeepsWhatTheUserChangedSince(t *testing.T) {
	for _, host := range hosts.All() {
		t.Run(host.ID, func(t *testing.T) {
			e := home(t, host.ID)
			record := filepath.Join(e.Home, "hosts.json")
			before, err := hosts.Look(e, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := plan(t, e).Apply(record, validate); err != nil {
				t.Fatal(err)
			}
			path := host.UserFile(e)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.NewReplacer("dark", "light", "GitHub", "Ayu", "smart_approve", "auto", "184", "185",
				"Ctrl+Space", "Alt+Space", "for all projects", "for everything", "Perplexity API Key",
				"The key").Replace(string(text))
			if changed == string(text) {
				t.Fatal("the test changed nothing")
			}
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			undone, err := hosts.Undo(record)
			if err != nil || len(undone) != 1 || undone[0].How != "edited" {
				t.Fatalf("undo: got %v, %v, want one file edited", undone, err)
			}
			after, err := hosts.Look(e, nil, false)
			if err != nil || after[0].Err != nil {
				t.Fatal(err, after[0].Err)
			}
			if after[0].Registered || fmt.Sprint(after[0].Entries) != fmt.Sprint(before[0].Entries) {
				t.Errorf("after undo: got %v, want %v", after[0].Entries, before[0].Entries)
			}
			if text, _ := os.ReadFile(path); strings.Contains(string(text), "/usr/local/bin/airlock") {
				t.Error("Airlock is still registered")
			}
		})
	}
}

func TestFilesThatCannotBeChanged(t *testing.T) {
	tests := []struct {
		name, host, content string
		spoil               func(t *testing.T, path string)
		want                string
	}{
		{name: "broken JSON", host: "cursor", content: `{"mcpServers": {`, want: "not valid JSON"},
		{name: "a list", host: "cursor", content: `[]`, want: "not a JSON object"},
		{name: "servers that are a list", host: "cursor", content: `{"mcpServers": []}`, want: "not a mapping"},
		{name: "broken TOML", host: "codex", content: "[mcp_servers", want: "not valid TOML"},
		{name: "servers in one line of TOML", host: "codex", content: "mcp_servers = {a = {command = \"x\"}}\n",
			want: "write it as [mcp_servers.a]"},
		{name: "broken YAML", host: "goose", content: "extensions: [", want: "not valid YAML"},
		{name: "servers in one line of YAML", host: "goose", content: "extensions: {a: {type: stdio, cmd: x}}\n",
			want: "block style"},
		{name: "a link to nothing", host: "cursor", spoil: func(t *testing.T, path string) {
			if err := os.Symlink("nowhere", path); err != nil {
				t.Fatal(err)
			}
		}, want: "leads nowhere"},
		{name: "a directory", host: "cursor", spoil: func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, want: "not a regular file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := home(t)
			host, _ := hosts.Find(test.host)
			path := host.UserFile(e)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if test.spoil != nil {
				test.spoil(t, path)
			} else if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			p := plan(t, e)
			var err error
			if len(p.Skipped) == 1 {
				err = p.Skipped[0].Err
			} else {
				err = p.Apply(filepath.Join(e.Home, "hosts.json"), validate)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if text, _ := os.ReadFile(path); test.spoil == nil && string(text) != test.content {
				t.Errorf("the file was changed to %q", text)
			}
		})
	}
}

func TestLinksModesAndEmptyFilesStay(t *testing.T) {
	e := home(t)
	target := filepath.Join(e.Home, "dotfiles.json")
	path := filepath.Join(e.Home, ".cursor", "mcp.json")
	if err := os.WriteFile(target, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := plan(t, e).Apply(filepath.Join(e.Home, "hosts.json"), validate); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode changed: %v, %v", info, err)
	}
	if text, _ := os.ReadFile(target); !strings.Contains(string(text), "/usr/local/bin/airlock") {
		t.Errorf("got %q, want Airlock's entry", text)
	}
}

func TestSnippets(t *testing.T) {
	got := map[string][]byte{}
	for _, host := range hosts.All() {
		text, err := host.Snippet(command)
		if err != nil {
			t.Fatal(err)
		}
		got[host.ID] = []byte(text)
	}
	golden.CheckDir(t, got, "testdata/snippets")
}
