package erofs

import (
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
)

// The file types of directory entries.
const (
	typeRegular = 1
	typeDir     = 2
	typeSymlink = 7
)

// entries lists what the directory contains, itself and its parent included, in
// the order that readers search in.
func (n *node) entries() []child {
	all := append([]child{{".", n}, {"..", n.parent}}, n.children...)
	slices.SortFunc(all, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return all
}

// split cuts entries into runs that fit into one block each: the entries first,
// then their names.
func split(entries []child) [][]child {
	var runs [][]child
	used, start := 0, 0
	for i, e := range entries {
		need := direntSize + len(e.name)
		if used+need > blockSize {
			runs = append(runs, entries[start:i])
			used, start = 0, i
		}
		used += need
	}
	return append(runs, entries[start:])
}

func runSize(run []child) int {
	size := 0
	for _, e := range run {
		size += direntSize + len(e.name)
	}
	return size
}

// dirSize is the length of a directory's data: whole blocks but for the last.
func dirSize(entries []child) int64 {
	runs := split(entries)
	return int64(len(runs)-1)*blockSize + int64(runSize(runs[len(runs)-1]))
}

// dirData encodes a directory.
func dirData(entries []child) []byte {
	var data []byte
	for _, run := range split(entries) {
		for len(data)%blockSize != 0 {
			data = append(data, make([]byte, blockSize-len(data)%blockSize)...)
		}
		offset := len(run) * direntSize
		for _, e := range run {
			data = binary.LittleEndian.AppendUint64(data, e.node.nid)
			data = binary.LittleEndian.AppendUint16(data, uint16(offset))
			data = append(data, fileType(e.node.mode), 0)
			offset += len(e.name)
		}
		for _, e := range run {
			data = append(data, e.name...)
		}
	}
	return data
}

func fileType(mode fs.FileMode) byte {
	switch mode.Type() {
	case fs.ModeDir:
		return typeDir
	case fs.ModeSymlink:
		return typeSymlink
	}
	return typeRegular
}
