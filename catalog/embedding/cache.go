package embedding

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
)

// maxCache is how many bytes of vectors a file may have.
const maxCache = 256 << 20

// cache keeps vectors in one file: a line with its format and what made them, the
// digest of the rest, and for each vector the digest of its text and its values. A
// nil *cache keeps nothing.
type cache struct {
	path, name string
}

func openCache(directory, name string) *cache {
	digest := strings.TrimPrefix(canon.Digest([]byte(name)), "sha256:")
	return &cache{filepath.Join(directory, digest[:32]+".vectors"), name}
}

// head begins a file.
func (c *cache) head(dimensions int, digest string) string {
	return fmt.Sprintf("airlock vectors 1 %d %s %q\n", dimensions, digest, c.name)
}

const digestSize = 32

// load returns what was saved; nothing when the file is missing or damaged.
func (c *cache) load() map[string][]float32 {
	vectors := map[string][]float32{}
	info, err := os.Stat(c.path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return vectors
	}
	raw, err := store.ReadFile(c.path)
	if err != nil {
		return vectors
	}
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var dimensions int
	if n, err := fmt.Sscanf(string(line), "airlock vectors 1 %d", &dimensions); n != 1 || err != nil ||
		dimensions < 1 || dimensions > maxDimensions {
		return vectors
	}
	size := digestSize + 4*dimensions
	if string(line)+"\n" != c.head(dimensions, canon.Digest(body)) || len(body)%size != 0 {
		return vectors
	}
	for ; len(body) > 0; body = body[size:] {
		vector := make([]float32, dimensions)
		for i := range vector {
			vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[digestSize+4*i:]))
		}
		vectors["sha256:"+hex.EncodeToString(body[:digestSize])] = vector
	}
	return vectors
}

// save replaces the file. Vectors of another length than the first are left out.
func (c *cache) save(vectors map[string][]float32) error {
	if c == nil {
		return nil
	}
	var body []byte
	dimensions := 0
	for _, digest := range slices.Sorted(maps.Keys(vectors)) {
		vector := vectors[digest]
		key, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
		if dimensions == 0 {
			dimensions = len(vector)
		}
		if err != nil || len(vector) == 0 || len(vector) != dimensions || len(body)+digestSize+4*dimensions > maxCache {
			continue
		}
		body = append(body, key...)
		for _, x := range vector {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
		}
	}
	if dimensions == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("keeping vectors: %w", err)
	}
	return store.WriteFile(c.path, append([]byte(c.head(dimensions, canon.Digest(body))), body...), 0o600)
}
