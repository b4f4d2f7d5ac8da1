package layer_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/images/layer"
)

// entry is one file of a zip archive.
type entry struct {
	name    string
	content string
	mode    fs.FileMode
}

func zipOf(t *testing.T, entries ...entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.zip")
	file, err := os.Create(path)
	must(t, err)
	w := zip.NewWriter(file)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		header.SetMode(e.mode)
		out, err := w.CreateHeader(header)
		must(t, err)
		_, err = out.Write([]byte(e.content))
		must(t, err)
	}
	must(t, w.Close())
	must(t, file.Close())
	return path
}

func same(name string) string { return name }

func TestZipRefusesHostileArchives(t *testing.T) {
	outside := t.TempDir()
	for name, entries := range map[string][]entry{
		"a name that climbs":         {{"../victim", "x", 0o644}},
		"a name that climbs inside":  {{"a/../../victim", "x", 0o644}},
		"an absolute name":           {{outside + "/victim", "x", 0o644}},
		"another system's separator": {{`..\victim`, "x", 0o644}},
		"a NUL":                      {{"a\x00b", "x", 0o644}},
		"a symbolic link":            {{"link", outside, fs.ModeSymlink | 0o777}},
		"a file through a link":      {{"link", outside, fs.ModeSymlink | 0o777}, {"link/victim", "x", 0o644}},
		"a device":                   {{"device", "", fs.ModeDevice | 0o666}},
		"a pipe":                     {{"pipe", "", fs.ModeNamedPipe | 0o666}},
		"a file below a file":        {{"a", "x", 0o644}, {"a/b", "x", 0o644}},
		"more than there is room":    {{"a", strings.Repeat("x", 1<<20+1), 0o644}},
		"more in several files": {{"a", strings.Repeat("x", 1<<19), 0o644},
			{"b", strings.Repeat("x", 1<<19+1), 0o644}},
		"a whiteout": {{"usr/.wh.bin", "", 0o644}},
	} {
		t.Run(name, func(t *testing.T) {
			place, err := layer.NewZip(t.TempDir(), 1<<20)
			must(t, err)
			if err := place.Unpack(t.Context(), zipOf(t, entries...), same); err == nil {
				t.Error("got no error")
			}
			must(t, place.Close())
			if names, err := os.ReadDir(outside); err != nil || len(names) != 0 {
				t.Fatalf("outside of the root: got %v, %v, want nothing", names, err)
			}
		})
	}
}

func TestZipKeepsWhatIsWanted(t *testing.T) {
	dir := t.TempDir()
	place, err := layer.NewZip(dir, 1<<20)
	must(t, err)
	target := func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "drop"), "move/") }
	must(t, place.Unpack(t.Context(), zipOf(t,
		entry{"package/", "", fs.ModeDir | 0o700}, entry{"package/a.py", "a", 0o600}, entry{"move/b.so", "b", 0o4777},
		entry{"drop", "c", 0o644}, entry{"both", "same", 0o644}, entry{"other", "one", 0o644},
	), target))
	must(t, place.Unpack(t.Context(), zipOf(t, entry{"both", "same", 0o644}, entry{"other", "two", 0o644}), target))
	must(t, place.Close())
	for name, want := range map[string]fs.FileMode{"package": fs.ModeDir | 0o755, "package/a.py": 0o644, "b.so": 0o755,
		"both": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want || !info.ModTime().Equal(layer.Time()) {
			t.Errorf("%s: got %v, %v, want mode %v and the time of every image", name, info, err, want)
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, "other")); err != nil || string(content) != "two" {
		t.Errorf("a file of two archives: got %q, %v, want the later one", content, err)
	}
	if !slices.Equal(place.Replaced, []string{"other"}) {
		t.Errorf("got replaced %q, want only what differed", place.Replaced)
	}
	if _, err := os.Stat(filepath.Join(dir, "drop")); err == nil {
		t.Error("what has no target was unpacked")
	}
}

func TestZipOfGarbage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.zip")
	must(t, os.WriteFile(path, []byte("PK\x03\x04 and no more"), 0o600))
	place, err := layer.NewZip(t.TempDir(), 1<<20)
	must(t, err)
	if err := place.Unpack(t.Context(), path, same); err == nil {
		t.Error("got no error")
	}
	must(t, place.Close())
}

func FuzzZip(f *testing.F) {
	f.Add("a/b", "content", uint32(0o644), "")
	f.Add("../a", "x", uint32(fs.ModeSymlink), "a")
	f.Fuzz(func(t *testing.T, name, content string, mode uint32, second string) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "root")
		must(t, os.Mkdir(dir, 0o755))
		path := filepath.Join(t.TempDir(), "a.zip")
		file, err := os.Create(path)
		must(t, err)
		w := zip.NewWriter(file)
		for _, n := range []string{name, second} {
			header := &zip.FileHeader{Name: n}
			header.SetMode(fs.FileMode(mode))
			if out, err := w.CreateHeader(header); err == nil {
				_, _ = out.Write([]byte(content)) // a directory takes none
			}
		}
		must(t, w.Close())
		must(t, file.Close())
		place, err := layer.NewZip(dir, 1<<20)
		must(t, err)
		_ = place.Unpack(t.Context(), path, same) // may refuse
		must(t, place.Close())
		if names, err := os.ReadDir(parent); err != nil || len(names) != 1 {
			t.Errorf("outside of the root: got %v, %v, want nothing", names, err)
		}
	})
}
