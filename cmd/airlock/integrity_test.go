package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// copyImage replaces the link to the image of Python by a directory with links to its files, so that added files do not
// affect the built one.
func (i *installation) copyImage() (rootFS string) {
	i.Helper()
	image := filepath.Join(i.home, "images", "python")
	from, err := filepath.EvalSymlinks(image)
	if err == nil {
		err = os.Remove(image)
	}
	if err != nil {
		i.Fatal(err)
	}
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(image, relative)
		switch {
		case entry.IsDir():
			return os.MkdirAll(to, 0o755)
		case entry.Type().IsRegular():
			return os.Link(path, to)
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		return nil
	})
	if err != nil {
		i.Skipf("the image cannot be linked here: %v", err)
	}
	found, err := filepath.Glob(filepath.Join(image, "*", "rootfs"))
	if err != nil || len(found) == 0 {
		i.Fatalf("no image of Python: %v", err)
	}
	return found[0]
}

// refused runs a command that must fail before any state is opened, and returns its output.
func (i *installation) refused(verb string, environ ...string) string {
	i.Helper()
	cmd := i.command(verb, "--config", i.file)
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		i.Errorf("airlock %s began: %s", verb, out)
	}
	for _, state := range []string{"state.db", "audit", "keys", "approvals"} {
		if _, err := os.Lstat(filepath.Join(i.home, state)); err == nil {
			i.Errorf("airlock %s opened %s first", verb, state)
		}
	}
	return string(out)
}

// an installation that was tampered with does not start, and nothing of its
// state was opened.
func TestATamperedInstallationDoesNotStart(t *testing.T) {
	i := newInstallation(t, "", "python")
	rootFS := i.copyImage()
	for variable, value := range map[string]string{"LD_PRELOAD": "/tmp/evil.so", "PYTHONSTARTUP": "/tmp/evil.py"} {
		if out := i.refused("serve", variable+"="+value); !strings.Contains(
			out, "environment integrity verification failed") || !strings.Contains(out, "env -u "+variable) {
			t.Errorf("%s: %s", variable, out)
		}
	}
	packages := filepath.Join(rootFS, "usr", "lib", "python3.11", "site-packages")
	hook := filepath.Join(packages, "litellm_init.pth")
	if err := os.MkdirAll(packages, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("import base64; exec(base64.b64decode('aW1wb3J0IG9z'))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"serve", "mcp"} {
		if out := i.refused(verb); !strings.Contains(
			out, "CRITICAL: Detected 1 suspicious startup hooks: 1 with malicious patterns") ||
			!strings.Contains(out, hook) {
			t.Errorf("%s: %s", verb, out)
		}
	}
	out, err := i.command("integrity", "check", "--config", i.file, "--json").Output()
	var found struct {
		Status string                  `json:"status"`
		Counts struct{ Malicious int } `json:"counts"`
		Hooks  []string                `json:"suspicious_hooks"`
	}
	if err == nil || json.Unmarshal(out, &found) != nil || found.Status != "COMPROMISED" ||
		found.Counts.Malicious != 1 || len(found.Hooks) != 1 {
		t.Errorf("%v, %s", err, out)
	}
	if err := os.RemoveAll(packages); err != nil { // it was not there before
		t.Fatal(err)
	}

	// A file that no list of hooks knows is found by the image's digest.
	added := filepath.Join(rootFS, "usr", "bin", "python-added")
	if err := os.WriteFile(added, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := i.refused("serve"); !strings.Contains(out, `the image "python" is not what was built`) {
		t.Error(out)
	}
	if err := os.Remove(added); err != nil {
		t.Fatal(err)
	}

	// Sandboxes run from a file beside the directory, so that file is compared, too, and a
	// changed one is not sealed (issue 24).
	i.airlock("integrity", "seal") // it makes the file
	if err := os.Remove(filepath.Join(i.home, "installed.json")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(rootFS + ".erofs")
	if err != nil {
		t.Fatal(err)
	}
	patched := bytes.Replace(whole, []byte("import"), []byte("export"), 1)
	replace := func(path string, content []byte) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.WriteFile(path, content, 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(rootFS + ".erofs.sum")
	if err != nil {
		t.Fatal(err)
	}
	sum := blake3.Sum256(patched)
	ofPatched := []byte("blake3:" + hex.EncodeToString(sum[:]))
	for name, digest := range map[string][]byte{"the file": recorded,
		"the file and its digest": ofPatched} {
		replace(rootFS+".erofs", patched)
		replace(rootFS+".erofs.sum", digest)
		if out := i.refused("serve"); !strings.Contains(out, "has been changed since it was made") {
			t.Errorf("%s: serve: %s", name, out)
		}
		if out, err := i.command("integrity", "seal", "--config", i.file).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "has been changed since it was made") {
			t.Errorf("%s: seal: %v, %s", name, err, out)
		}
	}
	replace(rootFS+".erofs", whole)
	replace(rootFS+".erofs.sum", recorded)

	// An image that is changed after it was sealed is refused until it is sealed again. A start that
	// does not read the images compares the digest of the file with the sealed one.
	i.airlock("integrity", "seal")
	replace(rootFS+".erofs.sum", ofPatched)
	if out := i.refused("mcp"); !strings.Contains(
		out, `the root file system of the image "python" is not the one that was sealed`) {
		t.Error(out)
	}
	replace(rootFS+".erofs.sum", recorded)
	if out := i.airlock("integrity", "check"); !strings.HasPrefix(out, "CLEAN_ENVIRONMENT") {
		t.Error(out)
	}
	// So is one that was built later.
	node := filepath.Join(i.home, "images", "node")
	if err := os.Symlink(filepath.Join(testenv.Sandbox(t).Home, "images", "node"), node); err != nil {
		t.Fatal(err)
	}
	if out := i.refused("mcp"); !strings.Contains(out, `the image "node" is not the one that was sealed`) {
		t.Error(out)
	}
	if err := os.Remove(node); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(i.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.file, append(text, "limits: {calls: 7}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"serve", "mcp"} {
		if out := i.refused(verb); !strings.Contains(out, i.file+" is not what was sealed") ||
			!strings.Contains(out, "airlock integrity seal") {
			t.Errorf("%s: %s", verb, out)
		}
	}
	i.airlock("integrity", "seal")
	i.airlock("integrity", "check")
	if err := os.WriteFile(filepath.Join(i.home, "installed.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := i.refused("mcp"); !strings.Contains(out, "reading what was installed") {
		t.Error(out)
	}
	if err := os.Remove(filepath.Join(i.home, "installed.json")); err != nil {
		t.Fatal(err)
	}
	i.serve()
}
