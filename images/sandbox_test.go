package images_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestRealImagesAreReproducible builds the real images a second time, in another
// place, from the base layers that are there. AIRLOCK_TEST_SLOW=1 fetches the
// packages again too.
func TestRealImagesAreReproducible(t *testing.T) {
	env := testenv.Sandbox(t)
	for _, def := range images.List() {
		t.Run(def.Name, func(t *testing.T) {
			image, err := images.Open(env.Home, def.Name)
			if err != nil {
				t.Fatal(err)
			}
			defer image.Close()
			if err := images.Verify(t.Context(), image); err != nil {
				t.Error(err)
			}
			opts := images.BuildOptions{Home: t.TempDir(), Name: def.Name, Progress: t.Output()}
			if os.Getenv("AIRLOCK_TEST_SLOW") == "1" {
				opts.Fresh = true
			} else {
				copyBases(t, env.Home, opts.Home, def.Name)
			}
			built, err := images.Build(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if built.Digest != image.Digest {
				t.Errorf("got %s, want %s", built.Digest, image.Digest)
			}
		})
	}
}

// copyBases copies the layers that an image is made of.
func copyBases(t *testing.T, from, to, name string) {
	t.Helper()
	const bases = "bases"
	prefixes := []string{name + "-"}
	if name == images.Verifier {
		prefixes = append(prefixes, "python-")
	}
	for _, prefix := range prefixes {
		found, err := filepath.Glob(filepath.Join(store.Images(from), bases, prefix+"*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no layer %q is there (run `make images` first): %v", prefix, err)
		}
		for _, layer := range found {
			if err := os.CopyFS(filepath.Join(store.Images(to), bases, filepath.Base(layer)),
				os.DirFS(layer)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestModulesOfTheBundle loads what a guest loads ahead with the interpreter of the
// real image: all of it comes from one file.
func TestModulesOfTheBundle(t *testing.T) {
	env := testenv.Sandbox(t)
	image, err := images.Open(env.Home, "python")
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	cmd, err := images.PythonOf(t.Context(), image.RootFS, "-B", "-c", loadFromBundle, image.RootFS)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cmd.CombinedOutput()
	const want = "/workspace/client/codec.py\nin parts\n/opt/airlock/modules.bundle\n"
	if err != nil || string(got) != want {
		t.Errorf("got the place of the client and the files that were opened %q (%v), want %q", got, err, want)
	}
}

// loadFromBundle prints the file that tracebacks name for a function of the client, and the files that are opened to
// load the modules of a guest.
const loadFromBundle = `
import sys
root = sys.argv[1]
sys.path[:0] = [root + "/opt/airlock/guest"]
from airlock_guest import bundle
bundle.FILE = root + bundle.FILE
opened = set()
sys.addaudithook(lambda event, args: event == "open" and opened.add(args[0]))
reads = []
read = bundle.pread
bundle.pread = lambda *args: reads.append(read(*args)) or reads[-1]
bundle.use()
from airlock_guest import session
session.load_usual()
bundle.stop()
print(session.decode.__code__.co_filename)
print("in parts" if len(reads) < 45 else f"in {len(reads)} reads")  # there are some hundred modules
print(*sorted(file.removeprefix(root) for file in opened), sep="\n")
`
