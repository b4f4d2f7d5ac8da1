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

// The names in a recipe of docs/extending.md: a path in code quotes, packages of `go test`, and tests by
// a part of their name.
var (
	quotedPath  = regexp.MustCompile("`([a-z_]+/[\\w./-]+)`")
	testPackage = regexp.MustCompile(`\./[\w./]+`)
	testsRun    = regexp.MustCompile(`-run (\w+)`)
)

// The recipes of docs/extending.md name files, packages and tests that exist, and each names the tests of the
// addition (issue 25).
func TestRecipesNameWhatExists(t *testing.T) {
	root := testenv.RepoRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := strings.Split(string(page), "\n## ")[1:]
	var titles []string
	for _, recipe := range recipes {
		title, text, _ := strings.Cut(recipe, "\n")
		titles = append(titles, title)
		text = strings.Join(strings.Fields(text), " ")
		_, tests, said := strings.Cut(text, "*Tests:*")
		if !said {
			t.Errorf("%q does not say how to test it", title)
		}
		for _, path := range quotedPath.FindAllStringSubmatch(text, -1) {
			if !exists(root, path[1]) && !exists(root, "cmd/airlock/"+path[1]) {
				t.Errorf("%q names %s, which does not exist", title, path[1])
			}
		}
		for _, pkg := range testPackage.FindAllString(tests, -1) {
			if !exists(root, strings.TrimSuffix(pkg, "/...")) {
				t.Errorf("%q tests %s, which does not exist", title, pkg)
			}
		}
		for _, name := range testsRun.FindAllStringSubmatch(tests, -1) {
			if !hasTest(t, name[1]) {
				t.Errorf("%q runs the test %s, which does not exist", title, name[1])
			}
		}
	}
	for _, wanted := range []string{"An engine", "A driver", "A store", "A page of the console", "A verb",
		"A shared limit"} {
		if !slices.Contains(titles, wanted) {
			t.Errorf("there is no recipe %q", wanted)
		}
	}
}

func exists(root, path string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
	return err == nil
}

// hasTest reports whether a test of this directory has a part of a name.
func hasTest(t *testing.T, part string) bool {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && regexp.MustCompile(`func Test\w*`+part).Match(text)
	})
}

// The engines of actions, which permissions of agents can name, are those of the API, of its description and of the
// SDK.
func TestEnginesAreTheSameEverywhere(t *testing.T) {
	root := testenv.RepoRoot(t)
	named := func(path, begin, end, name string) (names []string) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		_, table, found := strings.Cut(string(text), begin)
		if !found {
			t.Fatalf("%s has no table of engines", path)
		}
		table, _, _ = strings.Cut(table, end)
		for _, m := range regexp.MustCompile(name).FindAllStringSubmatch(table, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
		return names
	}
	engines := named("sdk/python/src/qwed_sdk/engine.py", "\nENGINES", "\n}", `"(\w+)":`)
	described := named("app/api/openapi.json", `"allowed_engines"`, "]\n            }", `\n {16}"(\w+)"`)
	priced := named("admission/risk/actions.json", "{", "\x00", `"engine": "(\w+)"`)
	served := named("app/api/verify.go", "var questions", "\n}", `\n\t"(\w+)":`)
	for _, list := range [][]string{priced, described, served} {
		slices.Sort(list)
		if !slices.Equal(list, priced) {
			t.Errorf("got the engines %q, want %q as in admission/risk/actions.json", list, priced)
		}
		for _, name := range list {
			if !slices.Contains(engines, name) {
				t.Errorf("qwed_sdk/engine.py has no engine %q", name)
			}
		}
	}
	if len(priced) < 8 {
		t.Errorf("got the engines %q, want at least 8", priced)
	}
}
