package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"
)

// treeFile contains the hashes of the Merkle tree, in the order of tlog.StoredHashIndex. It is
// a cache: its hashes are compared with a signed root before use.
const treeFile = "tree"

// tree is the RFC 6962 Merkle tree over the lines of a log's records, as the
// roots of its perfect subtrees, largest first. The zero value is the empty tree.
type tree struct {
	size  uint64
	roots []tlog.Hash
}

// add appends a leaf to the tree, and to stored the hashes that tlog keeps for it.
func (t *tree) add(leaf tlog.Hash, stored []tlog.Hash) []tlog.Hash {
	stored = append(stored, leaf)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.roots) - 1
		leaf = tlog.NodeHash(t.roots[last], leaf)
		t.roots = t.roots[:last]
		stored = append(stored, leaf)
	}
	t.roots = append(t.roots, leaf)
	t.size++
	return stored
}

// root returns the tree's root hash. The tree must not be empty.
func (t *tree) root() tlog.Hash {
	last := len(t.roots) - 1
	root := t.roots[last]
	for i := last - 1; i >= 0; i-- {
		root = tlog.NodeHash(t.roots[i], root)
	}
	return root
}

func (t *tree) clone() tree { return tree{t.size, append([]tlog.Hash(nil), t.roots...)} }

// hashFile reads and writes the tree's file.
type hashFile struct{ file *os.File }

// openHashes opens the tree's file of a log for reading.
func openHashes(path string) (hashFile, error) {
	f, err := openPlain(path, os.O_RDONLY)
	return hashFile{f}, err
}

// makeHashes opens the tree's file of a log for writing. The content is overwritten without
// being checked. A file with a second hard link may be a file with records, so it is not
// written; its name is removed and a new file is created.
func makeHashes(path string) (hashFile, error) {
	f, err := openPlain(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return hashFile{}, err
	}
	var stat unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &stat); err == nil && stat.Nlink == 1 {
		return hashFile{f}, nil
	}
	if err = errors.Join(err, f.Close(), os.Remove(path)); err != nil {
		return hashFile{}, err
	}
	f, err = openPlain(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	return hashFile{f}, err
}

// update is like write, and does nothing if the file already has the hashes.
func (f hashFile) update(leaf uint64, stored []tlog.Hash) error {
	const part = 1 << 10
	was := make([]byte, part*tlog.HashSize)
	for done := 0; done < len(stored); done += part {
		some := stored[done:min(len(stored), done+part)]
		is := hashBytes(some)
		offset := hashOffset(leaf) + int64(done)*tlog.HashSize
		if _, err := f.file.ReadAt(was[:len(is)], offset); err == nil && bytes.Equal(was[:len(is)], is) {
			continue
		}
		if _, err := f.file.WriteAt(is, offset); err != nil {
			return fmt.Errorf("writing its tree: %w", err)
		}
	}
	return nil
}

func hashBytes(hashes []tlog.Hash) []byte {
	text := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		text = append(text, h[:]...)
	}
	return text
}

// write puts the stored hashes of the leaves from the numbered one on, from 0.
func (f hashFile) write(leaf uint64, stored []tlog.Hash) error {
	if _, err := f.file.WriteAt(hashBytes(stored), hashOffset(leaf)); err != nil {
		return fmt.Errorf("writing its tree: %w", err)
	}
	return nil
}

func hashOffset(leaf uint64) int64 { return tlog.StoredHashIndex(0, int64(leaf)) * tlog.HashSize }

// ReadHashes reads stored hashes, for tlog's proofs.
func (f hashFile) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if _, err := f.file.ReadAt(hashes[i][:], index*tlog.HashSize); err != nil {
			return nil, fmt.Errorf("reading the tree of the audit log: %w", err)
		}
	}
	return hashes, nil
}

var _ tlog.HashReader = hashFile{}

// at returns the tree as it was at a size, if it has the given root.
func (f hashFile) at(size uint64, root tlog.Hash) (tree, bool) {
	t := tree{size: size}
	var indexes []int64
	for done := uint64(0); done < size; {
		level := bits.Len64(size-done) - 1
		indexes = append(indexes, tlog.StoredHashIndex(level, int64(done>>level)))
		done += 1 << level
	}
	var err error
	t.roots, err = f.ReadHashes(indexes)
	return t, err == nil && size > 0 && t.root() == root
}

// MemoryHashes are the hashes of a tree that was computed from its leaves, in the order of tlog.StoredHashIndex.
type MemoryHashes []tlog.Hash

// ReadHashes returns stored hashes, for tlog's proofs.
func (m MemoryHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(m)) {
			return nil, errors.New("the audit log has no such hash")
		}
		hashes[i] = m[index]
	}
	return hashes, nil
}

// readPlain reads a file of a log, never through a symbolic link.
func readPlain(path string) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	info, err := f.Stat()
	if err == nil {
		text.Grow(int(info.Size()) + bytes.MinRead)
		_, err = text.ReadFrom(f)
	}
	return text.Bytes(), errors.Join(err, f.Close())
}

// openPlain opens a file of a log, never through a symbolic link.
func openPlain(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noFollow|unix.O_NONBLOCK, 0o600) // a pipe must not keep it waiting
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
