package layer_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/images/layer"
)

// plant makes a small root file system; mode and time vary what must not matter.
func plant(t *testing.T, fileMode fs.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for _, directory := range []string{"usr/bin", "usr/lib", "empty"} {
		must(t, os.MkdirAll(filepath.Join(dir, directory), 0o777))
	}
	must(t, os.WriteFile(filepath.Join(dir, "usr/bin/tool"), []byte("#!"), fileMode|0o100))
	must(t, os.WriteFile(filepath.Join(dir, "usr/lib/data"), []byte("data"), fileMode))
	must(t, os.Symlink("usr/lib", filepath.Join(dir, "lib")))
	must(t, os.Symlink("/usr/bin/tool", filepath.Join(dir, "usr/bin/absolute")))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, layer.Write(t.Context(), &out, dir))
	return out.Bytes()
}

func TestWriteIsReproducible(t *testing.T) {
	first := pack(t, plant(t, 0o644))
	second := pack(t, plant(t, 0o600))
	if !bytes.Equal(first, second) {
		t.Error("two equal trees gave different layers")
	}
	unpacked := t.TempDir()
	must(t, layer.Unpack(t.Context(), bytes.NewReader(first), unpacked, nil))
	if !bytes.Equal(first, pack(t, unpacked)) {
		t.Error("an unpacked layer gave another layer")
	}
}

func TestWriteRefusesSpecialFiles(t *testing.T) {
	dir := plant(t, 0o644)
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if err := layer.Write(t.Context(), &bytes.Buffer{}, dir); err == nil {
		t.Error("a tree with a pipe: got no error")
	}
}

func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, header := range headers {
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len("content"))
		}
		must(t, w.WriteHeader(&header))
		if header.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte("content"))
			must(t, err)
		}
	}
	must(t, w.Close())
	return out.Bytes()
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}
	}
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	tests := []struct {
		name    string
		entries []tar.Header
	}{
		{"a name that climbs", []tar.Header{file("../victim")}},
		{"a name that climbs in the middle", []tar.Header{file("a/../../victim")}},
		{"a file through an absolute link", []tar.Header{link("a", outside), file("a/victim")}},
		{"a file through a climbing link", []tar.Header{link("a", "../../../../../../.."+outside), file("a/victim")}},
		{"a directory through a link", []tar.Header{link("a", outside), {Typeflag: tar.TypeDir, Name: "a/victim/"}}},
		{"a hard link to the outside", []tar.Header{{Typeflag: tar.TypeLink, Name: "a", Linkname: victim}}},
		{"a hard link through a link", []tar.Header{link("a", outside),
			{Typeflag: tar.TypeLink, Name: "b", Linkname: "a/victim"}}},
		{"a hard link to a link", []tar.Header{link("a", victim), {Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}}},
		{"a device", []tar.Header{{Typeflag: tar.TypeChar, Name: "a", Devmajor: 1, Devminor: 3}}},
		{"a pipe", []tar.Header{{Typeflag: tar.TypeFifo, Name: "a"}}},
		{"a whiteout", []tar.Header{file("usr/.wh.bin")}},
		{"a directory in the place of a file", []tar.Header{file("a"), {Typeflag: tar.TypeDir, Name: "a/"}}},
		{"a file in the place of a full directory", []tar.Header{file("a/b"), file("a")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := layer.Unpack(t.Context(), bytes.NewReader(archive(t, test.entries...)), t.TempDir(), nil)
			if err == nil {
				t.Error("got no error")
			}
			if names, err := os.ReadDir(outside); err != nil || len(names) != 0 {
				t.Fatalf("outside of the root: got %v, %v, want nothing", names, err)
			}
		})
	}
}

func TestUnpackKeepsWhatIsFine(t *testing.T) {
	dir := t.TempDir()
	data := archive(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/bin/", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./bin", Linkname: "usr/bin"},
		tar.Header{Typeflag: tar.TypeDir, Name: "bin/"},
		tar.Header{Typeflag: tar.TypeReg, Name: "/bin/su", Mode: 0o4755},
		tar.Header{Typeflag: tar.TypeLink, Name: "bin/again", Linkname: "./usr/bin/su"},
		tar.Header{Typeflag: tar.TypeReg, Name: "unmentioned/data", Mode: 0o666},
		tar.Header{Typeflag: tar.TypeChar, Name: "dev/null"},
	)
	keep := func(name string) bool { return !layer.Under(name, "dev") }
	old := syscall.Umask(0o077)
	err := layer.Unpack(t.Context(), bytes.NewReader(data), dir, keep)
	syscall.Umask(old)
	must(t, err)
	want := map[string]fs.FileMode{
		"bin": fs.ModeSymlink | 0o777, "usr": fs.ModeDir | 0o755, "usr/bin": fs.ModeDir | 0o755,
		"usr/bin/su": 0o755, "usr/bin/again": 0o755, "unmentioned": fs.ModeDir | 0o755, "unmentioned/data": 0o644,
	}
	for name, mode := range want {
		info, err := os.Lstat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode() != mode {
			t.Errorf("%s: got mode %v, want %v", name, info.Mode(), mode)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "dev")); err == nil {
		t.Error("dev was kept")
	}
}

func TestCheckFindsEveryChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(dir string) error
		want   string // part of the message; empty: none
	}{
		{"nothing changed", func(string) error { return nil }, ""},
		{"content", func(d string) error { return os.WriteFile(d+"/usr/lib/data", []byte("DATA"), 0o644) },
			`content of "usr/lib/data"`},
		{"size", func(d string) error { return os.Truncate(d+"/usr/lib/data", 1) }, `"usr/lib/data" has 1 bytes`},
		{"a pipe in the place of a file", func(d string) error {
			return errors.Join(os.Remove(d+"/usr/lib/data"), syscall.Mkfifo(d+"/usr/lib/data", 0o644))
		}, `"usr/lib/data" has mode`},
		{"a link to the file", func(d string) error {
			return errors.Join(os.Rename(d+"/usr/lib/data", d+"/usr/lib/moved"), os.Symlink("moved", d+"/usr/lib/data"))
		}, `"usr/lib/data" has mode`},
		{"mode", func(d string) error { return os.Chmod(d+"/usr/bin/tool", 0o755|fs.ModeSetuid) },
			`"usr/bin/tool" has mode`},
		{"an open directory", func(d string) error { return os.Chmod(d+"/empty", 0o777) }, `"empty" has mode`},
		{"a closed root", func(d string) error { return os.Chmod(d, 0o700) }, `"." has mode`},
		{"a missing file", func(d string) error { return os.Remove(d + "/usr/bin/tool") }, `"usr/bin/tool" is missing`},
		{"a new file", func(d string) error { return os.WriteFile(d+"/usr/new", nil, 0o644) },
			`"usr/new" should not be there`},
		{"a bent link", func(d string) error {
			if err := os.Remove(d + "/lib"); err != nil {
				return err
			}
			return os.Symlink("/etc", d+"/lib")
		}, `"lib" leads to "/etc"`},
	}
	data := pack(t, plant(t, 0o644))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o755))
			must(t, layer.Unpack(t.Context(), bytes.NewReader(data), dir, nil))
			must(t, test.change(dir))
			tree, err := layer.OpenTree(dir)
			must(t, err)
			defer tree.Close()
			must(t, tree.Add(t.Context(), bytes.NewReader(data)))
			err = tree.Check(t.Context())
			if test.want == "" && err != nil || test.want != "" &&
				(err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	var seed bytes.Buffer
	w := tar.NewWriter(&seed)
	for _, header := range []tar.Header{
		{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/tmp"},
		{Typeflag: tar.TypeDir, Name: "b/"},
		{Typeflag: tar.TypeLink, Name: "b/c", Linkname: "a"},
	} {
		if err := w.WriteHeader(&header); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "root")
		must(t, os.Mkdir(dir, 0o755))
		if layer.Unpack(t.Context(), bytes.NewReader(data), dir, nil) == nil {
			var out bytes.Buffer
			if err := layer.Write(t.Context(), &out, dir); err != nil {
				t.Errorf("what was unpacked cannot be packed: %v", err)
			}
		}
		if names, err := os.ReadDir(parent); err != nil || len(names) != 1 {
			t.Errorf("outside of the root: got %v, %v, want nothing", names, err)
		}
	})
}
