package images

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestCheckRequirement(t *testing.T) {
	for language, requirements := range map[string]map[string]bool{
		"python": {
			"numpy": true, "pandas>=2,<3": true, "Pillow": true, "ruamel.yaml": true, "a": true,
			"zope.interface ~= 5.0":   true,
			"uvicorn[standard]>=0.20": true, "numpy==2.*": true, "torch===2.1.0+cpu": true,
			"": false, "-r": false, "--index-url=http://x": false, "-e .": false, ".": false, "./a": false,
			"/etc/passwd": false, "../a.whl": false,
			"https://x/a.whl": false, "git+https://x/a": false, "a @ https://x/a.whl": false,
			"a; python_version<'3'": false, "numpy\n--pre": false,
			"numpy pandas": false, "a>=": false, "numpy #x": false, "a[b": false, "${HOME}": false, "a$(id)": false,
			strings.Repeat("a", 200): false, "nümpy": false,
		},
		"node": {
			"lodash": true, "lodash@4": true, "zod@^3.23.0": true, "@scope/name": true, "@scope/name@~1.2.3": true,
			"a@1.x": true, "p-limit@7.0.0-beta.1": true,
			"": false, "--registry=http://x": false, "-g": false, ".": false, "./a": false, "../a": false, "/a": false,
			"a/b": false, "user/repo": false,
			"https://x/a.tgz": false, "git+ssh://x": false, "a@https://x": false, "a@npm:b": false,
			"a@file:../b": false, "A": false, "a b": false,
			"a@latest": false, "a@>=1 || <0": false, "@scope": false, "a\n-g": false, "../../x@1": false,
		},
		"verify": {"sympy": false},
	} {
		for requirement, ok := range requirements {
			if err := CheckRequirement(language, requirement); (err == nil) != ok {
				t.Errorf("%s %q: got %v, want ok %v", language, requirement, err, ok)
			}
		}
	}
}

// A package may be asked for with a range of versions or without.
func TestNodeDependency(t *testing.T) {
	for requirement, want := range map[string][2]string{
		"lodash": {"lodash", "*"}, "lodash@^4": {"lodash", "^4"}, "@a/b": {"@a/b", "*"},
		"@a/b@1.2.3": {"@a/b", "1.2.3"},
	} {
		if name, versions := nodeDependency(requirement); name != want[0] || versions != want[1] {
			t.Errorf("%s: got %q, %q, want %q", requirement, name, versions, want)
		}
	}
}

var wheelOfA = Package{Source: FromPyPI, Name: "a", Version: "1.0", Digest: "sha256:" + strings.Repeat("ab", 32)}

const moduleOfA = `{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"*"}},` +
	`"node_modules/a":{"version":"1.0.0","integrity":"sha512-eA=="}}}`

func TestPackageLockComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "airlock.lock")
	lock, err := ReadPackageLock(path)
	if err != nil || lock.Python != nil || lock.Node != nil {
		t.Fatalf("no file: got %+v, %v, want an empty lock", lock, err)
	}
	if extra, err := lock.Extra("python", nil); err != nil || !extra.empty() {
		t.Errorf("nothing is asked for: got %+v, %v, want nothing", extra, err)
	}
	if _, err := lock.Extra("python", []string{"a"}); !errors.Is(err, ErrUnlocked) {
		t.Errorf("an empty lock: got %v, want %v", err, ErrUnlocked)
	}
	lock.Python = &PythonLock{Wanted: []string{"a"}, Wheels: map[string][]Package{hostArch: {wheelOfA}}}
	lock.Node = &NodeLock{Wanted: []string{"a"}, PackageLock: json.RawMessage(moduleOfA)}
	if err := lock.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := ReadPackageLock(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"python", "node"} {
		before, err := lock.Extra(language, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		after, err := again.Extra(language, []string{"a"})
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s: got %+v, %v, want what was written, %+v", language, after, err, before)
		}
		if _, err := again.Extra(language, []string{"a", "b"}); !errors.Is(err, ErrUnlocked) {
			t.Errorf("%s: more is asked for: got %v, want %v", language, err, ErrUnlocked)
		}
	}
}

// A lock file may come from a foreign repository: nothing in it reaches pip or npm as an
// option, a path or a URL.
func TestHostilePackageLocksAreRefused(t *testing.T) {
	wheel := func(change func(p *Package)) string {
		p := wheelOfA
		change(&p)
		text, _ := json.Marshal(
			// always has a form
			PackageLock{Python: &PythonLock{Wanted: []string{"a"}, Wheels: map[string][]Package{"amd64": {p}}}})
		return string(text)
	}
	node := func(entry string) string {
		return `{"node":{"wanted":["a"],"packageLock":{"lockfileVersion":3,"packages":{"":{},` + entry + `}}}}`
	}
	const digest = `"integrity":"sha512-eA=="`
	for name, text := range map[string]string{
		"no JSON":                    `x`,
		"an unknown key":             `{"pyton":{}}`,
		"an option as name":          wheel(func(p *Package) { p.Name = "--index-url" }),
		"a second line in a name":    wheel(func(p *Package) { p.Name = "a\n-r /etc/passwd" }),
		"a second line in a version": wheel(func(p *Package) { p.Version = "1\n--pre" }),
		"a path as version":          wheel(func(p *Package) { p.Version = "../1" }),
		"no digest":                  wheel(func(p *Package) { p.Digest = "" }),
		"a weaker digest":            wheel(func(p *Package) { p.Digest = "md5:00" }),
		"another source":             wheel(func(p *Package) { p.Source = FromDebian }),
		"another version of npm's":   `{"node":{"wanted":["a"],"packageLock":{"lockfileVersion":1}}}`,
		"a module without a digest":  node(`"node_modules/a":{"version":"1.0.0"}`),
		"a module of an address": node(
			`"node_modules/a":{"version":"1.0.0","resolved":"https://evil.example/a.tgz",` + digest + `}`),
		"a module of a repository": node(
			`"node_modules/a":{"version":"1.0.0","resolved":"git+ssh://git@evil.example/a.git#0",` + digest + `}`),
		"a module that is a directory": node(`"node_modules/a":{"link":true,"resolved":"../../etc",` + digest + `}`),
		"a module that climbs":         node(`"node_modules/../../../etc/a":{"version":"1.0.0",` + digest + `}`),
		"a module elsewhere":           node(`"packages/a":{"version":"1.0.0",` + digest + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "airlock.lock")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var refused *PackageError
			if _, err := ReadPackageLock(path); !errors.As(err, &refused) || refused.Hint() == "" {
				t.Errorf("got %v, want a refusal with a hint", err)
			}
		})
	}
}

func TestModulesWithScriptsAreTold(t *testing.T) {
	scripted, err := checkModules([]byte(`{"lockfileVersion":3,"packages":{"":{},
		"node_modules/@s/b":{"integrity":"sha512-eA==","hasInstallScript":true},
		"node_modules/a":{"integrity":"sha512-eA=="},
		"node_modules/a/node_modules/c":{"integrity":"sha1-eA==","hasInstallScript":true}}}`))
	if want := []string{"@s/b", "c"}; err != nil || !slices.Equal(scripted, want) {
		t.Errorf("got %q, %v, want %q", scripted, err, want)
	}
}

// Other packages make another image, beside the one without them.
func TestExtraMakesAnotherImage(t *testing.T) {
	plain := fakeInputs(t)
	if got := (Extra{}).apply(plain); got.directory() != plain.directory() || got.key() != plain.key() {
		t.Error("no packages gave another image")
	}
	one := Extra{Wanted: []string{"a"}, Wheels: []Package{wheelOfA}}.apply(plain)
	other := wheelOfA
	other.Version = "2.0"
	two := Extra{Wanted: []string{"a"}, Wheels: []Package{other}}.apply(plain)
	names := []string{plain.directory(), one.directory(), two.directory()}
	slices.Sort(names)
	if len(slices.Compact(names)) != 3 {
		t.Errorf("got the directories %q, want three", names)
	}
	if got := string(one.files[wantedFile]); got != "a\n" || plain.files[wantedFile] != nil {
		t.Errorf("the guest is told of %q, want the package alone", got)
	}
}

func TestReplacedRequirements(t *testing.T) {
	const requirements = "# locked\na==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via b\nB_c==2 \\\n " +
		"   --hash=sha256:cc\nd==3 \\\n    --hash=sha256:dd\n"
	got := string(replaced([]byte(requirements), map[string]string{"a": "", "b-c": "==1.9 --hash=sha256:ee"}))
	if want := "# locked\nB_c==1.9 --hash=sha256:ee\nd==3 \\\n    --hash=sha256:dd\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWheelTarget(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.py": "a/b.py", "a-1.dist-info/METADATA": "a-1.dist-info/METADATA", "a.so": "a.so",
		"a-1.data/purelib/a/b.py": "a/b.py", "a-1.data/platlib/a.so": "a.so",
		"a-1.data/scripts/a": "", "a-1.data/data/bin/a": "", "a-1.data/headers/a.h": "", "a-1.data/purelib": "",
		"a/__pycache__/b.cpython-311.pyc": "", "a/b.pyc": "", "a/tests/b.py": "",
	} {
		if got := wheelTarget(name, []string{"*/tests"}); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestPipsFailuresInASentence(t *testing.T) {
	p := pip{arch: "arm64"}
	for said, want := range map[string]string{
		"ERROR: Could not find a version that satisfies the requirement a==9 (from versions: 1, 2)\nERROR: No " +
			"matching distribution found for a==9": `no wheel of the Python package "a==9" was found for CPython ` +
			`3.11 on arm64`,
		"ERROR: Cannot install a==1 and b==2 because these package versions have conflicting " +
			"dependencies.": "no versions of the Python packages fit together: a==1 and b==2",
		"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.": "does not have the digest in " +
			"images.lock",
		"/usr/bin/python3: No module named pip": `needs the program "pip"`,
		"ERROR: something new": "pip could not fetch the Python packages: exit status 1\n" +
			"  ERROR: something new",
	} {
		if err := p.failure(errors.New("exit status 1"), said); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", said, err, want)
		}
	}
}

func TestPipReportsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": `x`,
		"a source": `{"install":[{"metadata":{"name":"a","version":"1"},` +
			`"download_info":{"url":"https://x/a-1.tar.gz","archive_info":{"hashes":{"sha256":"` +
			strings.Repeat("ab", 32) + `"}}}}]}`,
		"no digest": `{"install":[{"metadata":{"name":"a","version":"1"},` +
			`"download_info":{"url":"https://x/a-1-py3-none-any.whl"}}]}`,
		"a bad name": `{"install":[{"metadata":{"name":"-a b","version":"1"},` +
			`"download_info":{"url":"https://x/a-1-py3-none-any.whl","archive_info":{"hashes":{"sha256":"` +
			strings.Repeat("ab", 32) + `"}}}}]}`,
	} {
		if got, err := parsePipReport([]byte(text)); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
