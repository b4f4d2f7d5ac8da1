package erofs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// Where things are in the superblock (struct erofs_super_block).
const (
	superOffset = 1024
	superSize   = 128
	superMagic  = 0xE0F5E1E2
	metaBlock   = 1 // inodes begin here
)

// Mode bits of inodes (inode(7)).
const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeSymlink = 0o120000
)

// Write writes the directory dir as an image to w. Everything in the image belongs
// to root and has no set-ID bits; names, permissions, contents, symbolic links,
// hard links and times of files are kept; extended attributes and times of directories are not. A device, pipe or
// socket in the directory is an error, and so is a file that changes meanwhile.
func Write(w io.Writer, dir string) error {
	tree, err := scan(dir)
	if err != nil {
		return fmt.Errorf("making an image of %q: %w", dir, err)
	}
	blocks, err := place(tree.nodes)
	if err != nil {
		return fmt.Errorf("making an image of %q: %w", dir, err)
	}
	out := &writer{Writer: bufio.NewWriterSize(w, 1<<20)}
	out.super(len(tree.nodes), blocks)
	for _, n := range tree.nodes {
		out.inode(n)
	}
	out.pad()
	for _, n := range tree.nodes {
		if err := out.data(n); err != nil {
			return fmt.Errorf("making an image of %q: %w", dir, err)
		}
		out.pad()
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("making an image of %q: %w", dir, err)
	}
	return nil
}

// place decides where every node's data begins, and returns the number of
// blocks of the image.
func place(nodes []*node) (uint32, error) {
	inodes := int64(firstSlot*slotSize + len(nodes)*inodeSize)
	next := metaBlock + blocksFor(inodes)
	for _, n := range nodes {
		if next+blocksFor(n.size) > math.MaxUint32 {
			return 0, errors.New("it is too large for an image")
		}
		n.block = uint32(next)
		next += blocksFor(n.size)
	}
	return uint32(next), nil
}

func blocksFor(size int64) int64 { return (size + blockSize - 1) / blockSize }

// writer counts what it writes. An error of the underlying writer sticks and
// comes out of Flush.
type writer struct {
	*bufio.Writer
	offset int64
}

func (w *writer) bytes(b []byte) {
	n, _ := w.Write(b) // the error sticks
	w.offset += int64(n)
}

// pad fills the current block.
func (w *writer) pad() {
	if rest := w.offset % blockSize; rest != 0 {
		w.bytes(make([]byte, blockSize-rest))
	}
}

func (w *writer) super(nodes int, blocks uint32) {
	block := make([]byte, blockSize)
	sb := block[superOffset : superOffset+superSize]
	le := binary.LittleEndian
	le.PutUint32(sb[0:], superMagic)
	sb[12] = blockBits
	le.PutUint16(sb[14:], firstSlot) // the root's number
	le.PutUint64(sb[16:], uint64(nodes))
	le.PutUint32(sb[36:], blocks)
	le.PutUint32(sb[40:], metaBlock)
	w.bytes(block)
	w.bytes(make([]byte, firstSlot*slotSize))
}

// inode writes the extended form (struct erofs_inode_extended) with plain data.
func (w *writer) inode(n *node) {
	var b [inodeSize]byte
	le := binary.LittleEndian
	le.PutUint16(b[0:], 1) // extended, flat plain
	le.PutUint16(b[4:], modeBits(n.mode))
	le.PutUint64(b[8:], uint64(n.size))
	le.PutUint32(b[16:], n.block)
	le.PutUint32(b[20:], uint32(n.nid))
	le.PutUint64(b[32:], uint64(n.mtime))
	le.PutUint32(b[40:], n.nanos)
	le.PutUint32(b[44:], n.links)
	w.bytes(b[:])
}

func modeBits(mode fs.FileMode) uint16 {
	bits := uint16(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	switch mode.Type() {
	case fs.ModeDir:
		return bits | modeDir
	case fs.ModeSymlink:
		return bits | modeSymlink
	}
	return bits | modeRegular
}

func (w *writer) data(n *node) error {
	switch n.mode.Type() {
	case fs.ModeDir:
		w.bytes(dirData(n.entries()))
		return nil
	case fs.ModeSymlink:
		w.bytes([]byte(n.target))
		return nil
	}
	file, err := os.Open(n.path)
	if err != nil {
		return err
	}
	defer file.Close()
	copied, err := io.Copy(w.Writer, io.LimitReader(file, n.size+1))
	w.offset += copied
	if err == nil && copied != n.size {
		err = fmt.Errorf("%q changed while it was read", n.path)
	}
	return err
}
