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
				copyBases(t, env.Home, opts.Home)
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

func copyBases(t *testing.T, from, to string) {
	t.Helper()
	const bases = "bases"
	if err := os.CopyFS(filepath.Join(store.Images(to), bases), os.DirFS(filepath.Join(store.Images(from), bases))); err != nil {
		t.Fatal(err)
	}
}
