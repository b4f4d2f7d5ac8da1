package codegen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
)

// smallTree is the tree of one server with one tool.
func smallTree(t testing.TB, description string) *codegen.Tree {
	t.Helper()
	return generate(t, []catalog.Server{{ID: "files", Tools: []catalog.Tool{
		{ServerID: "files", Name: "read", Description: description, InputSchema: []byte(`{"type":"object"}`)},
	}}}, codegen.Python)
}

func publish(t testing.TB, dir string, tree *codegen.Tree) *codegen.Lease {
	t.Helper()
	lease, err := codegen.Publish(t.Context(), dir, tree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	})
	return lease
}

// checkPublished fails the test unless the directory holds the tree's files.
func checkPublished(t testing.TB, dir string, tree *codegen.Tree) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found++
		}
		return err
	})
	if err != nil || found != len(tree.Files) {
		t.Fatalf("%s: got %d files (%v), want %d", dir, found, err, len(tree.Files))
	}
	for _, f := range tree.Files {
		got, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil || string(got) != string(f.Data) {
			t.Errorf("%s: got other content than the tree's (%v)", f.Path, err)
		}
	}
}

func TestPublishedTreeIsSharedAndReadableByAll(t *testing.T) {
	dir, tree := t.TempDir(), smallTree(t, "Read.")
	first, second := publish(t, dir, tree), publish(t, dir, tree)
	if first.Path != second.Path || filepath.Base(first.Path) != strings.TrimPrefix(tree.Digest, "sha256:") {
		t.Errorf("got %q and %q, want one path that is named by the digest", first.Path, second.Path)
	}
	checkPublished(t, first.Path, tree)
	for name, want := range map[string]fs.FileMode{".": 0o755, "files": 0o755, "files/read.py": 0o444} {
		info, err := os.Stat(filepath.Join(first.Path, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestDamageIsNoticedAndMadeAgain(t *testing.T) {
	damages := map[string]func(tree string) error{
		"an edited wrapper": func(tree string) error {
			return os.WriteFile(filepath.Join(tree, "files/read.py"), []byte("import os\n"), 0o444)
		},
		"a missing file": func(tree string) error { return os.Remove(filepath.Join(tree, "files/read.py")) },
		"a file more": func(tree string) error {
			return os.WriteFile(
				filepath.Join(tree, "files/x.py"), nil, 0o444)
		},
		"a directory more": func(tree string) error { return os.Mkdir(filepath.Join(tree, "asyncio"), 0o755) },
		"a link in place of a file": func(tree string) error {
			path := filepath.Join(tree, "files/read.py")
			if err := os.Rename(path, tree+"/../elsewhere.py"); err != nil {
				return err
			}
			return os.Symlink("../../elsewhere.py", path)
		},
		"a mode": func(tree string) error { return os.Chmod(filepath.Join(tree, "files/read.py"), 0o666) },
		"a file in place of the tree": func(tree string) error {
			if err := os.RemoveAll(tree); err != nil {
				return err
			}
			return os.WriteFile(tree, nil, 0o644)
		},
		"a link in place of the tree": func(tree string) error {
			if err := os.RemoveAll(tree); err != nil {
				return err
			}
			return os.Symlink("/", tree)
		},
		"nothing left": os.RemoveAll,
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir, tree := t.TempDir(), smallTree(t, "Read.")
			lease := publish(t, dir, tree)
			// The test edits as root or as the owner; modes alone would not stop it.
			if err := os.Chmod(filepath.Join(lease.Path, "files/read.py"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := damage(lease.Path); err != nil {
				t.Fatal(err)
			}
			checkPublished(t, publish(t, dir, tree).Path, tree)
		})
	}
}

func TestLeaseNoticesChanges(t *testing.T) {
	changes := map[string]func(tree string) error{
		"an edit": func(tree string) error {
			return os.WriteFile(
				filepath.Join(tree, "files/read.py"), []byte("x"), 0o444)
		},
		"a new file": func(tree string) error { return os.WriteFile(filepath.Join(tree, "new.py"), nil, 0o444) },
		"a removal":  func(tree string) error { return os.Remove(filepath.Join(tree, "README.md")) },
		"a rename": func(tree string) error {
			return os.Rename(filepath.Join(tree, "README.md"), filepath.Join(tree, "files/read.py"))
		},
		"a move of the whole": func(tree string) error { return os.Rename(tree, tree+"-moved") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			dir, tree := t.TempDir(), smallTree(t, "Read.")
			lease := publish(t, dir, tree)
			if _, err := os.ReadFile(filepath.Join(lease.Path, "files/read.py")); err != nil || !lease.Intact() {
				t.Fatalf("an untouched tree: got changed (%v), want intact", err)
			}
			if err := change(lease.Path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if lease.Intact() {
					t.Error("got intact, want changed, and for good")
				}
			}
			again := publish(t, dir, tree)
			checkPublished(t, again.Path, tree)
			if !again.Intact() {
				t.Error("published again: got changed, want intact")
			}
		})
	}
}

func TestLeaseAfterClose(t *testing.T) {
	lease := publish(t, t.TempDir(), smallTree(t, "Read."))
	for range 2 {
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	}
	if lease.Intact() {
		t.Error("got intact, want a closed lease to promise nothing")
	}
}

func TestDamagedTreeStaysWhileItIsUsed(t *testing.T) {
	dir, tree := t.TempDir(), smallTree(t, "Read.")
	used := publish(t, dir, tree)
	if err := os.WriteFile(filepath.Join(used.Path, "more.py"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	mounted, err := os.OpenRoot(used.Path) // represents a sandbox that mounts it
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	publish(t, dir, tree)
	prune(t, dir, 0)
	if _, err := mounted.Stat("files/read.py"); err != nil {
		t.Errorf("the damaged tree under a lease: got %v, want it still there", err)
	}
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	prune(t, dir, 0)
	if _, err := mounted.Stat("files/read.py"); err == nil {
		t.Error("the damaged tree without a lease: got it still there, want it gone")
	}
}

func prune(t testing.TB, dir string, want int, keep ...string) {
	t.Helper()
	removed, err := codegen.Prune(t.Context(), dir,
		func(digest string) bool { return len(keep) > 0 && digest == keep[0] })
	if err != nil || removed != want {
		t.Errorf("Prune: got %d removed (%v), want %d", removed, err, want)
	}
}

func TestPruneLeavesWhatIsUsedOrWanted(t *testing.T) {
	dir := t.TempDir()
	used, wanted, unused := smallTree(t, "1"), smallTree(t, "2"), smallTree(t, "3")
	publish(t, dir, used)
	for _, tree := range []*codegen.Tree{wanted, unused} {
		if err := publish(t, dir, tree).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".staging-left-by-a-crash"), 0o700); err != nil {
		t.Fatal(err)
	}
	prune(t, dir, 1, wanted.Digest)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("got %v (%v), want the used and the wanted tree and the lock", entries, err)
	}
}

func TestPruneWithoutDirectory(t *testing.T) {
	prune(t, filepath.Join(t.TempDir(), "missing"), 0)
}

func TestPublishAndPruneAtTheSameTime(t *testing.T) {
	dir, tree := t.TempDir(), smallTree(t, "Read.")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				lease, err := codegen.Publish(t.Context(), dir, tree)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.ReadFile(filepath.Join(lease.Path, "files/read.py")); err != nil {
					t.Errorf("under a lease: %v", err)
				}
				if err := lease.Close(); err != nil {
					t.Error(err)
				}
				if _, err := codegen.Prune(t.Context(), dir, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
