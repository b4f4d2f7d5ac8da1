package dist

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// containers returns the container image of each architecture, whose digests and sizes agree with their layers.
func containers(t *testing.T) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "--extract", "--file", released(t, "airlock_*_oci.tar"), "--directory",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	named, err := outer.IndexManifest()
	if err != nil || len(named.Manifests) != 1 {
		t.Fatalf("the layout has %v (%v), want one index", named, err)
	}
	index, err := outer.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, manifest := range list.Manifests {
		image, err := index.Image(manifest.Digest)
		if err == nil {
			err = validate.Image(image)
		}
		if err != nil {
			t.Fatalf("%s: %v", manifest.Platform.Architecture, err)
		}
		images[manifest.Platform.Architecture] = image
	}
	return images
}

// The container image has the programs of the package, for each architecture.
func TestContainersHaveTheirArchitecture(t *testing.T) {
	testenv.Sandbox(t) // make dist has to come before
	images := containers(t)
	if len(images) != 2 {
		t.Fatalf("the container image is for %d architectures, want 2", len(images))
	}
	for architecture, image := range images {
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != architecture || config.OS != "linux" {
			t.Errorf("the image for %s is for %s (%v)", architecture, config.Platform(), err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatalf("%d layers (%v), want Debian's and ours", len(layers), err)
		}
		content, err := layers[1].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		got := programsIn(t, filesOf(t, content), architecture)
		if err := content.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(billed(t, architecture), got); diff != "" {
			t.Errorf("%s: bill of materials against container: %s", architecture, diff)
		}
	}
}

// TestAContainerServes unpacks the image for this machine as a container engine does, builds a sandbox image from
// packages that this machine has fetched, and runs a program with the image's own entry point and environment.
func TestAContainerServes(t *testing.T) {
	env := testenv.Sandbox(t)
	if os.Getuid() != 0 {
		t.Skip("a root file system of its own needs root")
	}
	image := containers(t)[runtime.GOARCH]
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, root: t.TempDir()}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		unpack := exec.Command("tar", "--extract", "--numeric-owner", "--directory", s.root)
		unpack.Stdin = content
		if out, err := unpack.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}
	bases := filepath.Join(s.root, "var/lib/airlock/images/bases")
	if err := os.MkdirAll(filepath.Dir(bases), 0o700); err != nil {
		t.Fatal(err)
	}
	copied := exec.Command("cp", "-a", filepath.Join(env.Home, "images/bases"), bases)
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	entry := "cd " + config.Config.WorkingDir + " && env " + strings.Join(config.Config.Env, " ") + " " +
		strings.Join(config.Config.Entrypoint, " ") + " "
	s.run(entry + "images build python")
	out := s.run("printf 'print(6 * 7)' >/tmp/p.py; " + entry + "run /tmp/p.py")
	if !strings.Contains(out, `"data":42`) {
		t.Errorf("the first program printed %s", out)
	}
	// Programs that change their user have no place in a container.
	found, err := exec.Command("find", s.root, "-xdev", "-type", "f", "-perm", "/6000").Output()
	if err != nil || len(bytes.TrimSpace(found)) > 0 {
		t.Errorf("the image has the set-user-ID programs %s (%v)", found, err)
	}
	if strings.Join(config.Config.Cmd, " ") != "serve --config /etc/airlock/airlock.yaml" {
		t.Errorf("the container runs %q", config.Config.Cmd)
	}
}
