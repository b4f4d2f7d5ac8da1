package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// imports matches what a module of Python or JavaScript imports, wherever the statement is.
var imports = regexp.MustCompile(`(?m)^\s*(?:from ([\w.]+) import ([\w, ]+)|import ([\w.]+))` +
	`|(?:from|import)\s*\(?\s*"\./([\w.]+)"`)

// No module of the guests and of sdk/python imports another one that imports it, also not inside of a
// function (issue 25).
func TestModulesImportInOneDirection(t *testing.T) {
	modules := map[string]string{} // the text of each module, by its name
	for _, path := range gitFiles(t, "images/*.py", "sdk/python/src/*.py", "images/node/*.js", "images/node/*.mjs") {
		text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), path))
		if err != nil {
			continue // removed, and not yet committed
		}
		name := path // of JavaScript: the path
		if module, isPython := strings.CutSuffix(path, ".py"); isPython {
			for _, root := range []string{"images/python/guest/", "images/verify/engines/", "images/python/",
				"sdk/python/src/"} {
				module = strings.TrimPrefix(module, root)
			}
			name = strings.ReplaceAll(strings.TrimSuffix(module, "/__init__"), "/", ".")
		}
		modules[name] = string(text)
	}
	if len(modules) < 150 {
		t.Fatalf("found %d modules: the check covers almost nothing", len(modules))
	}
	imported := map[string][]string{}
	for name, text := range modules {
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			wanted := []string{m[3], filepath.Dir(name) + "/" + m[4]}
			for member := range strings.SplitSeq(m[2], ",") {
				member, _, _ = strings.Cut(strings.TrimSpace(member), " as ")
				module := m[1] + "." + member
				if _, known := modules[module]; !known {
					module = m[1]
				}
				wanted = append(wanted, module)
			}
			for _, other := range wanted {
				if _, known := modules[other]; known && other != name && !slices.Contains(imported[name], other) {
					imported[name] = append(imported[name], other)
				}
			}
		}
	}
	done := map[string]bool{}
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if at := slices.Index(path, name); at >= 0 {
			t.Errorf("modules import each other: %s", strings.Join(append(path[at:], name), " → "))
			return
		}
		if done[name] {
			return
		}
		for _, other := range imported[name] {
			visit(other, append(path[:len(path):len(path)], name))
		}
		done[name] = true
	}
	for name := range modules {
		visit(name, nil)
	}
}
