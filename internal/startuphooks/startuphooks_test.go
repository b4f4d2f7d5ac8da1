package startuphooks_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/startuphooks"
)

const site = "usr/lib/python3.11/site-packages"

// root makes a root file system of files; a text "-> target" is a symbolic link.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// names on the list are looked into as well, everything else is a finding.
func TestHooks(t *testing.T) {
	const setuptools = "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == " +
		"'local'; enabled and __import__('_distutils_hack').add_shim(); \n"
	for name, c := range map[string]struct {
		files  map[string]string
		counts startuphooks.Counts
	}{
		"nothing": {map[string]string{site + "/a.py": "exec('x')"}, startuphooks.Counts{}},
		"what setuptools installs": {map[string]string{site + "/distutils-precedence.pth": setuptools},
			startuphooks.Counts{}},
		"and something more": {map[string]string{site + "/distutils-precedence.pth": setuptools +
			"import os; os.system('id')\n"}, startuphooks.Counts{Malicious: 1}},
		"an allowed name": {map[string]string{site + "/easy-install.pth": "./requests-2.0.egg\n"},
			startuphooks.Counts{}},
		"that leads astray": {map[string]string{site + "/easy-install.pth": "/tmp/evil\n"},
			startuphooks.Counts{Malicious: 1}},
		"that leads up": {map[string]string{site + "/easy-install.pth": "a/../../evil\n"},
			startuphooks.Counts{Malicious: 1}},
		"an unknown name": {map[string]string{site + "/my.pth": "./my\n"},
			startuphooks.Counts{Unauthorized: 1}},
		"a known attack": {map[string]string{site +
			"/litellm_init.pth": "import os, base64; exec(base64.b64decode('aQ=='))"},
			startuphooks.Counts{Malicious: 1}},
		"an import after a tab": {map[string]string{site + "/setuptools.pth": "import\tsubprocess"},
			startuphooks.Counts{Malicious: 1}},
		"a call with spaces": {map[string]string{site + "/pip.pth": "import os; os . popen ('x')"},
			startuphooks.Counts{Malicious: 1}},
		"after a mark of the byte order": {map[string]string{site + "/pip.pth": "\uFEFF/tmp/evil"},
			startuphooks.Counts{Malicious: 1}},
		"a link out of the root": {map[string]string{site + "/pip.pth": "-> /etc/passwd"},
			startuphooks.Counts{Unreadable: 1}},
		"a huge one": {map[string]string{site + "/pip.pth": strings.Repeat("# x\n", 1<<16)},
			startuphooks.Counts{Unreadable: 1}},
		"sitecustomize among packages": {map[string]string{site + "/sitecustomize.py": ""},
			startuphooks.Counts{Unauthorized: 1}},
		"sitecustomize beside them": {map[string]string{site + "/a.py": "",
			"usr/lib/python3.11/sitecustomize.py": ""}, startuphooks.Counts{Unauthorized: 1}},
		"in the packages of another place": {map[string]string{"usr/local/lib/python3.14/dist-packages/x.pth": ""},
			startuphooks.Counts{Unauthorized: 1}},
		"a library that is loaded first": {map[string]string{"etc/ld.so.preload": "/tmp/evil.so\n"},
			startuphooks.Counts{Unauthorized: 1}},
		"an empty list of such": {map[string]string{"etc/ld.so.preload": "\n"}, startuphooks.Counts{}},
		"upper case is another name": {map[string]string{site + "/Setuptools.pth": ""},
			startuphooks.Counts{Unauthorized: 1}},
		"two, of which one is not readable": {map[string]string{site + "/a.pth": "", site + "/b.pth": "-> nowhere"},
			startuphooks.Counts{Unreadable: 1, Unauthorized: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startuphooks.Root(root(t, c.files))
			clean := c.counts == startuphooks.Counts{}
			if r.Counts != c.counts || r.Verified != clean || (r.Status == startuphooks.Clean) != clean {
				t.Errorf("%+v, want %+v", r, c.counts)
			}
			if n := c.counts.Malicious + c.counts.Unauthorized + c.counts.Unreadable; len(r.Hooks) != n ||
				(n > 0) != strings.HasPrefix(r.Message, "CRITICAL: ") {
				t.Errorf("%q, %q", r.Hooks, r.Message)
			}
		})
	}
}

// these ten names are those that the document allows.
func TestAllowedNames(t *testing.T) {
	names := []string{
		"_virtualenv.pth", "coverage.pth", "distutils-precedence.pth", "easy-install.pth", "hatchling.pth",
		"pip.pth", "pytest.pth", "setuptools.pth", "site-packages.pth", "virtualenv.pth",
	}
	files := map[string]string{}
	for _, name := range names {
		files[site+"/"+name] = "./package\n"
	}
	if r := startuphooks.Root(root(t, files)); r.Status != startuphooks.Clean {
		t.Errorf("got %+v, want %s", r, startuphooks.Clean)
	}
}

// the keys are those of the seed document. A directory that cannot be listed is not
// reported as clean.
func TestResultOfADirectoryThatCannotBeListed(t *testing.T) {
	r := startuphooks.Root(root(t, map[string]string{site: "a file"}))
	raw, err := json.Marshal(r)
	var members map[string]json.RawMessage
	if err = errors.Join(err, json.Unmarshal(raw, &members)); err != nil {
		t.Fatal(err)
	}
	if r.Verified || r.Status != "COMPROMISED" || len(r.Errors) != 1 {
		t.Errorf("%s", raw)
	}
	for _, key := range []string{"verified", "status", "suspicious_hooks", "content_findings", "scan_errors", "counts",
		"message", "scanned_directories"} {
		if len(members[key]) == 0 || string(members[key]) == "null" {
			t.Errorf("no %s in %s", key, raw)
		}
	}
}

// A hook that was found in several places is one result.
func TestAll(t *testing.T) {
	bad := startuphooks.Root(root(t, map[string]string{site + "/a.pth": "exec('x')", site + "/b.pth": ""}))
	all := startuphooks.All(startuphooks.Root(t.TempDir()), bad, bad)
	if all.Verified || len(all.Hooks) != 4 || all.Counts.Malicious != 2 || all.Counts.Unauthorized != 2 ||
		len(all.Findings) != 2 {
		t.Errorf("%+v", all)
	}
	if r := startuphooks.All(); !r.Verified {
		t.Errorf("%+v", r)
	}
}

func TestVariables(t *testing.T) {
	got := startuphooks.Variables([]string{"PATH=/bin", "PYTHONSTARTUP=/tmp/x", "LD_PRELOAD=/tmp/x.so", "LD_AUDIT=",
		"PYTHONUNBUFFERED=1", "LD_PRELOAD=/y"})
	if want := []string{"LD_PRELOAD", "PYTHONSTARTUP"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
