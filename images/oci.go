package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/airlock-mcp/airlock/images/layer"
)

// Annotations and labels of an image.
const (
	annotationRef   = "org.opencontainers.image.ref.name"
	labelTitle      = "org.opencontainers.image.title"
	labelSummary    = "org.opencontainers.image.description"
	labelPackages   = "io.airlock.packages"     // one "name version" a line
	labelDifference = "io.airlock.lock-differs" // one sentence a line
)

// part is one layer of an image and how it was made.
type part struct {
	blob
	origin string
}

// Digest is the digest of the archive; DiffID, Compressed and Uncompressed follow
// from that the archive is not compressed.
func (p part) Digest() (v1.Hash, error) { return v1.NewHash(p.blob.Digest) }

// DiffID is the digest of the archive.
func (p part) DiffID() (v1.Hash, error) { return p.Digest() }

// Compressed opens the archive.
func (p part) Compressed() (io.ReadCloser, error) { return p.Uncompressed() }

// Uncompressed opens the archive.
func (p part) Uncompressed() (io.ReadCloser, error) { return os.Open(p.path) }

// Size is the archive's size in bytes.
func (p part) Size() (int64, error) { return p.blob.Size, nil }

// MediaType returns the type of an uncompressed archive.
func (p part) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

var _ v1.Layer = part{}

// writeLayout writes an OCI layout with one image of the given parts to the new
// directory dir and returns the digest of the image's manifest.
func writeLayout(dir string, def Definition, labels map[string]string, parts ...part) (string, error) {
	image, err := assemble(def, labels, parts)
	if err != nil {
		return "", fmt.Errorf("assembling image %q: %w", def.Name, err)
	}
	if err := linkBlobs(dir, parts); err != nil {
		return "", fmt.Errorf("assembling image %q: %w", def.Name, err)
	}
	digest, err := appendImage(dir, image, "airlock/"+def.Name)
	if err != nil {
		return "", fmt.Errorf("writing the OCI layout of image %q: %w", def.Name, err)
	}
	return digest.String(), nil
}

// appendImage writes the image and the index that names it.
func appendImage(dir string, image v1.Image, ref string) (v1.Hash, error) {
	digest, err := image.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	size, err := image.Size()
	if err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := written.WriteImage(image); err != nil {
		return v1.Hash{}, err
	}
	return digest, written.AppendDescriptor(v1.Descriptor{
		MediaType:   types.OCIManifestSchema1,
		Size:        size,
		Digest:      digest,
		Annotations: map[string]string{annotationRef: ref},
		Platform:    &v1.Platform{OS: "linux", Architecture: hostArch},
	})
}

func assemble(def Definition, labels map[string]string, parts []part) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: layer.Time()}
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: hostArch,
		OS:           "linux",
		Created:      created,
		Config: v1.Config{
			Entrypoint: def.Args,
			Env:        def.Env,
			User:       fmt.Sprintf("%d:%d", UID, GID),
			WorkingDir: Workspace,
			Labels:     labels,
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for _, part := range parts {
		adds = append(adds, mutate.Addendum{Layer: part, History: v1.History{Created: created, CreatedBy: part.origin}})
	}
	return mutate.Append(image, adds...)
}

// linkBlobs adds the archives to the layout by hard links, so that a cached base layer uses
// space once. Existing files are kept.
func linkBlobs(dir string, parts []part) error {
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	for _, part := range parts {
		digest, err := part.Digest()
		if err == nil {
			err = os.Link(part.path, filepath.Join(blobs, digest.Hex))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLayout opens the layers of the image with the given digest in the OCI
// layout dir, lowest first, and checks every byte of the chain from the digest to
// the layers on the way. use gets each layer's content.
func readLayout(dir, digest string, use func(io.Reader) error) error {
	hash, err := v1.NewHash(digest)
	if err != nil {
		return fmt.Errorf("reading an OCI layout: %w", err)
	}
	path, err := layout.FromPath(dir)
	if err != nil {
		return fmt.Errorf("reading the OCI layout %q: %w", dir, err)
	}
	manifest, err := checkedManifest(path, hash)
	if err != nil {
		return fmt.Errorf("reading the OCI layout %q: %w", dir, err)
	}
	for _, descriptor := range manifest.Layers {
		if err := useBlob(path, descriptor.Digest, use); err != nil {
			return fmt.Errorf("reading the OCI layout %q: %w", dir, err)
		}
	}
	return nil
}

func checkedManifest(path layout.Path, hash v1.Hash) (*v1.Manifest, error) {
	var manifest *v1.Manifest
	err := useBlob(path, hash, func(r io.Reader) (err error) {
		manifest, err = v1.ParseManifest(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return manifest, useBlob(path, manifest.Config.Digest, func(io.Reader) error { return nil })
}

// useBlob hands a blob's content to use, reads what use left, and compares the digest.
func useBlob(path layout.Path, want v1.Hash, use func(io.Reader) error) error {
	file, err := path.Blob(want)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	content := io.TeeReader(file, hash)
	if err := use(content); err != nil {
		return fmt.Errorf("blob %s: %w", want, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return fmt.Errorf("blob %s: %w", want, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.Hex {
		return fmt.Errorf("blob %s has the digest sha256:%s", want, got)
	}
	return nil
}
