package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// container returns the image of one architecture: Debian, which build/dist/base made, and the files of the package.
// Its own layer is written to dir.
func (r *release) container(dir string, entries []entry, architecture string) (v1.Image, error) {
	debian, own := filepath.Join(r.bases, "base-"+architecture+".tar.gz"), filepath.Join(dir, architecture+".tar.gz")
	if err := r.layer(own, entries); err != nil {
		return nil, err
	}
	created := v1.Time{Time: r.time}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			// tini is the first process: it reaps the processes that servers leave behind.
			Entrypoint:   []string{"/usr/bin/tini", "--", "/usr/bin/airlock"},
			Cmd:          []string{"serve", "--config", "/etc/airlock/airlock.yaml"},
			Env:          []string{"PATH=/usr/sbin:/usr/bin", "AIRLOCK_HOME=/var/lib/airlock", "HOME=/var/lib/airlock/home"},
			WorkingDir:   "/var/lib/airlock",
			ExposedPorts: map[string]struct{}{"7823/tcp": {}, "7824/tcp": {}},
			Labels: map[string]string{
				"org.opencontainers.image.title":    "Airlock",
				"org.opencontainers.image.version":  r.version,
				"org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.source":   "https://github.com/airlock-mcp/airlock",
			},
		},
	})
	if err != nil {
		return nil, err
	}
	for _, layer := range []struct{ file, by string }{{debian, "build/dist/base"}, {own, "build/dist"}} {
		made, err := tarball.LayerFromFile(layer.file, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: made,
			History: v1.History{Created: created, CreatedBy: layer.by}}); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// images writes the images of all architectures as one OCI layout in a tar file, and returns its name.
func (r *release) images(images map[string]v1.Image) (_ string, err error) {
	dir, err := os.MkdirTemp(r.out, "oci-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range slices.Sorted(maps.Keys(images)) {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: images[architecture],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version,
	})); err != nil {
		return "", err
	}
	name := fmt.Sprintf("airlock_%s_oci.tar", r.version)
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(r.tree(f, dir), f.Close())
}

// layer makes a layer with the files of an installed system.
func (r *release) layer(name string, entries []entry) error {
	var members []member
	for _, e := range entries {
		if e.system != "" && !strings.HasPrefix(e.system, "/usr/lib/systemd/") {
			members = append(members, member{e.system[1:], e.link, e.mode, e.installed()})
		}
	}
	return r.tar(name, members, []string{"usr", "usr/bin", "usr/lib", "usr/share", "etc"})
}

// tree writes the files below dir as a tar file.
func (r *release) tree(to io.Writer, dir string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return w.WriteHeader(r.header(tar.TypeDir, name+"/", 0o755))
		}
		header := r.header(tar.TypeReg, name, 0o644)
		header.Size = info.Size()
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		return copyFile(w, file)
	})
	return errors.Join(err, w.Close())
}
