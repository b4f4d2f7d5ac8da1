// Package erofs writes directories as read-only file system images in the EROFS
// format (Linux kernel documentation, filesystems/erofs), uncompressed: the
// subset that gVisor reads. Equal directories give equal bytes.
package erofs

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

const (
	blockBits  = 12
	blockSize  = 1 << blockBits
	slotSize   = 32 // inodes are addressed in slots of this size
	inodeSize  = 64 // the extended form, which stores times
	direntSize = 12
	maxName    = 255
	firstSlot  = 2 // slot 0 stays free, because 0 is not a valid inode number
)

// node is one file, directory or symbolic link of the image.
type node struct {
	path     string // on the host; "" only in tests of directories
	mode     fs.FileMode
	size     int64
	mtime    int64 // seconds
	nanos    uint32
	links    uint32
	target   string // of a symbolic link
	children []child
	parent   *node

	nid   uint64
	block uint32 // where its data begins
}

type child struct {
	name string
	node *node
}

// key identifies a file that has more than one name.
type key struct{ dev, ino uint64 }

// scanner collects the tree of a directory in a fixed order.
type scanner struct {
	nodes []*node // directories before what is in them
	links map[key]*node
}

func scan(dir string) (*scanner, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", dir)
	}
	s := &scanner{links: map[key]*node{}}
	root, err := s.add(dir, info, nil)
	if err != nil {
		return nil, err
	}
	root.parent = root
	return s, nil
}

func (s *scanner) add(path string, info fs.FileInfo, parent *node) (*node, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("%q has no inode", path)
	}
	id := key{uint64(stat.Dev), stat.Ino}
	if known := s.links[id]; known != nil && !info.IsDir() {
		known.links++
		return known, nil
	}
	n := &node{
		path: path, mode: info.Mode(), links: 1, parent: parent,
	}
	if info.Mode().IsRegular() { // the times of others change when a directory is copied
		n.mtime, n.nanos = info.ModTime().Unix(), uint32(info.ModTime().Nanosecond())
	}
	n.nid = uint64(firstSlot + len(s.nodes)*inodeSize/slotSize)
	s.nodes = append(s.nodes, n)
	switch n.mode.Type() {
	case fs.ModeDir:
		return n, s.addChildren(n)
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		n.target, n.size = target, int64(len(target))
		s.links[id] = n
		return n, err
	case 0:
		if n.size = info.Size(); n.size > math.MaxUint32*int64(blockSize) {
			return nil, fmt.Errorf("%q is too large for an image", path)
		}
		s.links[id] = n
		return n, nil
	}
	return nil, fmt.Errorf("%q is neither a file, a directory nor a symbolic link", path)
}

func (s *scanner) addChildren(n *node) error {
	entries, err := os.ReadDir(n.path) // sorted by name, byte by byte
	if err != nil {
		return err
	}
	n.links = 2
	for _, entry := range entries {
		path := filepath.Join(n.path, entry.Name())
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if len(entry.Name()) > maxName {
			return fmt.Errorf("the name of %q is too long", path)
		}
		c, err := s.add(path, info, n)
		if err != nil {
			return err
		}
		if c.mode.IsDir() {
			n.links++
		}
		n.children = append(n.children, child{entry.Name(), c})
	}
	n.size = dirSize(n.entries())
	return nil
}
