package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
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
	if err := r.write(own, func(to io.Writer) error { return r.layer(to, entries) }); err != nil {
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

// layer writes the files of an installed system.
func (r *release) layer(to io.Writer, entries []entry) error {
	w := tar.NewWriter(to)
	made := map[string]bool{"usr": true, "usr/bin": true, "usr/lib": true, "usr/share": true, "etc": true}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.system, b.system) })
	for _, e := range entries {
		name := strings.TrimPrefix(e.system, "/")
		if name == "" || strings.HasPrefix(name, "usr/lib/systemd/") {
			continue
		}
		if err := r.parents(w, path.Dir(name), made); err != nil {
			return err
		}
		content := e.content
		if e.packed != nil {
			content = e.packed
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(e.mode), Size: int64(len(content)),
			ModTime: r.time, Format: tar.FormatPAX}
		if e.link != "" {
			header.Typeflag, header.Linkname, header.Mode, header.Size = tar.TypeSymlink, e.link, 0o777, 0
			content = nil
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// parents writes the directories of a path that are not made yet, the outermost first.
func (r *release) parents(w *tar.Writer, dir string, made map[string]bool) error {
	if dir == "." || made[dir] {
		return nil
	}
	made[dir] = true
	if err := r.parents(w, path.Dir(dir), made); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: r.time,
		Format: tar.FormatPAX})
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
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: r.time,
			Format: tar.FormatPAX}
		if d.IsDir() {
			header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeDir, name+"/", 0o755, 0
			return w.WriteHeader(header)
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		return copyFile(w, file)
	})
	return errors.Join(err, w.Close())
}

// write makes a file with what content writes, as gzip.
func (r *release) write(name string, content func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(f)
	return errors.Join(content(packed), packed.Close(), f.Close())
}

func copyFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
