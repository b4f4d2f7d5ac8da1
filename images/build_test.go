package images

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/store"
)

func mustBuild(t *testing.T, from inputs, opts BuildOptions) Built {
	t.Helper()
	built, err := buildFrom(t.Context(), from, opts)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func mustOpen(t *testing.T, home string, from inputs) Image {
	t.Helper()
	image, err := openWanted(home, from)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func mustClose(t *testing.T, image Image) {
	t.Helper()
	if err := image.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBuild(t *testing.T) {
	newFakeTools(t)
	from, home := fakeInputs(t), t.TempDir()
	old := syscall.Umask(0o077)
	built, err := buildFrom(t.Context(), from, BuildOptions{Home: home})
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	image := mustOpen(t, home, from)
	defer mustClose(t, image)
	if built.Reused || image.Digest != built.Digest {
		t.Errorf("got %+v, want the new image %s", built, image.Digest)
	}
	if err := Verify(t.Context(), image); err != nil {
		t.Error(err)
	}
	want := map[string]fs.FileMode{
		".":                        fs.ModeDir | 0o755,
		"bin":                      fs.ModeSymlink | 0o777,
		"usr/bin/tool":             0o755,
		"usr/bin/alias":            fs.ModeSymlink | 0o777,
		"usr/bin/program":          0o755,
		"opt/airlock/client/a.txt": 0o644,
		"workspace":                fs.ModeDir | 0o755,
		"run/airlock":              fs.ModeDir | 0o755,
	}
	for name, mode := range want {
		info, err := os.Lstat(filepath.Join(image.RootFS, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: got %v, %v, want mode %v", name, info, err, mode)
		}
	}
	// The resolver of the machine that builds is replaced by a link into the directory of runs with a network.
	if to, err := os.Readlink(filepath.Join(image.RootFS, "etc", "resolv.conf")); to != "/usr/lib/ssl/resolv.conf" {
		t.Errorf("etc/resolv.conf leads to %q (%v)", to, err)
	}
	for _, name := range []string{"dev/null", packageList, "package", "README.md"} {
		if _, err := os.Lstat(filepath.Join(image.RootFS, name)); err == nil {
			t.Errorf("%s is in the image", name)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "images", "work", "fake")); err == nil {
		t.Error("the build left its scratch directory")
	}
}

func TestSameInputsGiveTheSameDigest(t *testing.T) {
	newFakeTools(t)
	first := mustBuild(t, fakeInputs(t), BuildOptions{Home: t.TempDir()})
	second := mustBuild(t, fakeInputs(t), BuildOptions{Home: t.TempDir()})
	if first.Digest != second.Digest {
		t.Errorf("got %s, want %s", second.Digest, first.Digest)
	}
}

func TestBuildDoesOnlyWhatIsMissing(t *testing.T) {
	tools := newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	first := mustBuild(t, from, opts)
	if again := mustBuild(t, from, opts); !again.Reused || again.Digest != first.Digest {
		t.Errorf("got %+v, want the first image once more", again)
	}
	from.files = map[string][]byte{"opt/airlock/client/a.txt": []byte("b")}
	if _, err := openWanted(opts.Home, from); !errors.Is(err, ErrStale) {
		t.Errorf("Open after Airlock changed: got %v, want %v", err, ErrStale)
	}
	changed := mustBuild(t, from, opts)
	if changed.Reused || changed.Digest == first.Digest {
		t.Errorf("got %+v, want another image", changed)
	}
	if got := tools.calls(t); got != 1 {
		t.Errorf("Debian was asked %d times, want once: the base layer did not change", got)
	}
	opts.Fresh = true
	if fresh := mustBuild(t, from, opts); fresh.Reused || fresh.Digest != changed.Digest {
		t.Errorf("got %+v, want the same image made anew", fresh)
	}
	if got := tools.calls(t); got != 2 {
		t.Errorf("Debian was asked %d times, want twice", got)
	}
}

func TestOtherInputsMayGiveTheSameImage(t *testing.T) {
	newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	first := mustBuild(t, from, opts)
	from.def.Debian.Drop = []string{"usr/not/there"}
	second := mustBuild(t, from, opts)
	if second.Digest != first.Digest || second.Reused {
		t.Errorf("got %+v, want %s made anew", second, first.Digest)
	}
	mustClose(t, mustOpen(t, opts.Home, from))
}

func TestPruneLeavesWhatIsInUse(t *testing.T) {
	newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	mustBuild(t, from, opts)
	held := mustOpen(t, opts.Home, from)
	from.files = map[string][]byte{"b": nil}
	mustBuild(t, from, opts)
	if err := Verify(t.Context(), held); err != nil {
		t.Errorf("an image in use was changed: %v", err)
	}
	mustClose(t, held)
	from.files = map[string][]byte{"c": nil}
	mustBuild(t, from, opts)
	if directories := subdirectories(filepath.Join(store.Images(opts.Home), "fake")); len(directories) != 1 {
		t.Errorf("got the directories %q, want only the current image", directories)
	}
}

func TestDamageIsFoundAndHealed(t *testing.T) {
	newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	mustBuild(t, from, opts)
	image := mustOpen(t, opts.Home, from)
	tool := filepath.Join(image.RootFS, "usr/bin/tool")
	if err := os.WriteFile(tool, []byte("X"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), image); err == nil || !strings.Contains(err.Error(), `"usr/bin/tool" was changed`) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	mustClose(t, image)
	opts.Fresh = true
	mustBuild(t, from, opts)
	healed := mustOpen(t, opts.Home, from)
	defer mustClose(t, healed)
	if err := Verify(t.Context(), healed); err != nil {
		t.Errorf("after a fresh build: %v", err)
	}
}

func TestVerifyFollowsTheDigest(t *testing.T) {
	newFakeTools(t)
	from, home := fakeInputs(t), t.TempDir()
	mustBuild(t, from, BuildOptions{Home: home})
	image := mustOpen(t, home, from)
	defer mustClose(t, image)
	manifest := filepath.Join(image.Layout, "blobs", "sha256", strings.TrimPrefix(image.Digest, "sha256:"))
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), image); err == nil || !strings.Contains(err.Error(), "has the digest") {
		t.Errorf("a changed manifest: got %v, want a wrong digest", err)
	}
}

func TestACachedBaseThatChangedIsMadeAnew(t *testing.T) {
	tools := newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	first := mustBuild(t, from, opts)
	layers, err := filepath.Glob(filepath.Join(store.Images(opts.Home), "bases", "fake-*", layerFile))
	if err != nil || len(layers) != 1 {
		t.Fatalf("got the layers %q, %v, want one", layers, err)
	}
	if err := os.Truncate(layers[0], 100); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(store.Images(opts.Home), "fake", currentFile)); err != nil {
		t.Fatal(err)
	}
	if again := mustBuild(t, from, opts); again.Digest != first.Digest || tools.calls(t) != 2 {
		t.Errorf("got %s after %d calls, want %s after 2", again.Digest, tools.calls(t), first.Digest)
	}
}

func TestConcurrentBuildsTakeTurns(t *testing.T) {
	tools := newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := buildFrom(t.Context(), from, opts); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := tools.calls(t); got != 1 {
		t.Errorf("Debian was asked %d times, want once", got)
	}
	mustClose(t, mustOpen(t, opts.Home, from))
}

// cancelOn cancels a build when it reports a certain step.
type cancelOn struct {
	step   string
	cancel context.CancelFunc
}

func (c cancelOn) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.step) {
		c.cancel()
	}
	return len(p), nil
}

func TestACancelledBuildLeavesTheFormerImage(t *testing.T) {
	tools := newFakeTools(t)
	from, opts := fakeInputs(t), BuildOptions{Home: t.TempDir()}
	mustBuild(t, from, opts)
	// Opening a pipe without a writer blocks for ever.
	if err := syscall.Mkfifo(filepath.Join(tools.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	tools.script(t, "mmdebstrap",
		"#!/bin/sh\necho 'I: downloading packages with apt...' >&2\nexec cat \"$FAKE_TOOLS/pipe\"\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := buildFrom(ctx, from, BuildOptions{Home: opts.Home, Fresh: true,
		Progress: cancelOn{"downloading Debian", cancel}})
	if err == nil {
		t.Error("got no error")
	}
	image := mustOpen(t, opts.Home, from)
	defer mustClose(t, image)
	if err := Verify(t.Context(), image); err != nil {
		t.Error(err)
	}
}

func TestBuildFails(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, tools fakeTools, from *inputs)
		want    string
	}{
		{"Debian cannot be reached", func(t *testing.T, tools fakeTools, _ *inputs) {
			tools.script(t, "mmdebstrap", "#!/bin/sh\necho 'E: could not resolve the host' >&2\nexit 25\n")
		}, "E: could not resolve the host"},
		{"Debian's archive breaks off", func(t *testing.T, tools fakeTools, _ *inputs) {
			tools.script(t, "mmdebstrap", "#!/bin/sh\nhead -c 700 \"$FAKE_TOOLS/debian.tar\"\n")
		}, "unexpected EOF"},
		{"npm cannot be reached", func(t *testing.T, tools fakeTools, _ *inputs) {
			tools.script(t, "npm", "#!/bin/sh\necho 'code ENOTFOUND' >&2\nexit 1\n")
		}, "code ENOTFOUND"},
		{"npm has another file than the lock", func(_ *testing.T, _ fakeTools, from *inputs) {
			from.locked = append(from.locked, Package{Source: FromNPM, Name: "package", Version: "1",
				Digest: "sha512-other"})
		}, "images.lock says sha512-other"},
		{"no package for this machine", func(_ *testing.T, _ fakeTools, from *inputs) {
			from.def.NPM.Package = nil
		}, "cannot be built for the architecture"},
		{"a link over a file", func(_ *testing.T, _ fakeTools, from *inputs) {
			from.def.Links["usr/bin/tool"] = "x"
		}, "adding a link"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tools := newFakeTools(t)
			from, home := fakeInputs(t), t.TempDir()
			test.prepare(t, tools, &from)
			_, err := buildFrom(t.Context(), from, BuildOptions{Home: home})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := openWanted(home, from); !errors.Is(err, ErrNotBuilt) {
				t.Errorf("Open: got %v, want %v", err, ErrNotBuilt)
			}
		})
	}
}

func TestMissingToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing *MissingToolError
	_, err := buildFrom(t.Context(), fakeInputs(t), BuildOptions{Home: t.TempDir()})
	if !errors.As(err, &missing) || missing.Tool != "mmdebstrap" || missing.Hint() != "apt-get install mmdebstrap" {
		t.Errorf("got %v, want that mmdebstrap is missing", err)
	}
}

func TestDifferencesFromTheLockAreTold(t *testing.T) {
	newFakeTools(t)
	from := fakeInputs(t)
	from.locked[0].Version = "0"
	built := mustBuild(t, from, BuildOptions{Home: t.TempDir()})
	want := []string{"tool is 1, images.lock says 0", "package 1 is not in images.lock"}
	if !slices.Equal(built.Warnings, want) {
		t.Errorf("got %q, want %q", built.Warnings, want)
	}
	from.locked = nil
	built = mustBuild(t, from, BuildOptions{Home: t.TempDir()})
	if len(built.Warnings) != 1 || !strings.Contains(built.Warnings[0], hostArch) {
		t.Errorf("got %q, want one sentence about the architecture", built.Warnings)
	}
}
