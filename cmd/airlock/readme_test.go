package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The sample of the README runs as it stands: its very text, in a directory like
// the clone that it speaks of.
func TestTheSampleOfTheReadme(t *testing.T) {
	env := testenv.OwnHome(t)
	root := testenv.RepoRoot(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile("(?s)\n## A first result of your own\n.*?\n```sh\n(.*?)\n```\n").FindSubmatch(readme)
	if sample == nil {
		t.Fatal("the README has no sample")
	}
	clone, user := t.TempDir(), t.TempDir()
	// npx takes a server that is installed in place of one from the registry.
	for link, target := range map[string]string{
		filepath.Join(clone, ".airlock"):    env.Home,
		filepath.Join(clone, "bin"):         filepath.Dir(ownProgram()),
		filepath.Join(user, "node_modules"): filepath.Join(root, "test", "servers", "node_modules"),
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	sh := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(sample[1]))
	sh.Dir = clone
	sh.Env = append(os.Environ(), "HOME="+user, "npm_config_offline=true", "npm_config_cache="+t.TempDir())
	var stderr strings.Builder
	sh.Stderr = &stderr
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &stderr)
	}
	confirmed, printed, _ := strings.Cut(string(out), "\n")
	if !strings.HasPrefix(confirmed, "confirmed ") {
		t.Errorf("the first line: got %q", confirmed)
	}
	line, rest, _ := strings.Cut(printed, "\n")
	var envelope struct {
		RunID  string `json:"run_id"`
		Result struct {
			Data struct {
				Errors int
				First  string
			}
		}
	}
	if err := json.Unmarshal([]byte(line), &envelope); err != nil {
		t.Fatalf("the first line: %v\n%s", err, out)
	}
	if data := envelope.Result.Data; data.Errors != 2 || data.First != "10:02 ERROR disk full" {
		t.Errorf("got %+v\n%s", data, &stderr)
	}
	for _, want := range []string{envelope.RunID[:len("run_")+4], "read_text_file"} {
		if !strings.Contains(rest, want) {
			t.Errorf("the list of runs and the log do not name %s:\n%s", want, rest)
		}
	}
}
