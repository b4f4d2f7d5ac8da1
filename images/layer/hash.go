package layer

import (
	"crypto/sha256"
	"hash"
	"runtime"

	"github.com/zeebo/blake3"
)

// NewHash returns a hash of 32 bytes for the content of images, and its name. Each process reads the file of a root
// file system before its first sandbox, and each start of a daemon reads all images. SHA-256 takes a second for 150 MB
// on a processor without instructions for it. Servers with arm64 have them, and BLAKE3 (O'Connor and others, BLAKE3:
// one function, fast everywhere, 2020) is slow in Go there.
func NewHash() (hash.Hash, string) {
	if runtime.GOARCH == "arm64" {
		return sha256.New(), "sha256"
	}
	return blake3.New(), "blake3"
}
