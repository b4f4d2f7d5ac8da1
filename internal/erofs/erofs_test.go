package erofs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/erofs"
)

// reader reads an image as the kernel's documentation describes it. It shares
// nothing with the writer.
type reader struct {
	image []byte
	meta  int
}

func le(b []byte, size int) uint64 {
	var whole [8]byte
	copy(whole[:], b[:size])
	return binary.LittleEndian.Uint64(whole[:])
}

type inode struct {
	mode  uint16
	nlink uint32
	mtime time.Time
	data  []byte
}

func (r reader) inode(nid uint64) inode {
	b := r.image[r.meta+int(nid)*32:]
	if format := le(b, 2); format != 1 {
		panic(fmt.Sprintf("inode %d: format %d", nid, format))
	}
	size, block := int(le(b[8:], 8)), int(le(b[16:], 4))
	return inode{
		mode: uint16(le(b[4:], 2)), nlink: uint32(le(b[44:], 4)),
		mtime: time.Unix(int64(le(b[32:], 8)), int64(le(b[40:], 4))),
		data:  r.image[block*4096 : block*4096+size],
	}
}

// list describes every name in the image in one line each.
func (r reader) list(nid uint64, path string, lines map[string]string) {
	node := r.inode(nid)
	lines[path] = fmt.Sprintf("%o %d %s %x", node.mode, node.nlink, node.mtime.UTC().Format(time.RFC3339Nano),
		node.data)
	if node.mode&0o170000 != 0o040000 {
		return
	}
	lines[path] = fmt.Sprintf("%o %d %s", node.mode, node.nlink, node.mtime.UTC().Format(time.RFC3339Nano))
	var names []string
	for start := 0; start < len(node.data); start += 4096 {
		block := node.data[start:min(start+4096, len(node.data))]
		count := int(le(block[8:], 2)) / 12
		for i := range count {
			from, to := int(le(block[i*12+8:], 2)), len(block)
			if i+1 < count {
				to = int(le(block[(i+1)*12+8:], 2))
			}
			name := strings.TrimRight(string(block[from:to]), "\x00")
			names = append(names, name)
			if name != "." && name != ".." {
				r.list(le(block[i*12:], 8), path+"/"+name, lines)
			}
		}
	}
	if !sort.StringsAreSorted(names) {
		panic("names in " + path + " are not sorted")
	}
}

func read(t interface{ Fatal(...any) }, image []byte) map[string]string {
	sb := image[1024:]
	if le(sb, 4) != 0xE0F5E1E2 || len(image) != int(le(sb[36:], 4))*4096 {
		t.Fatal("no superblock, or another size than it says")
	}
	lines := map[string]string{}
	reader{image, int(le(sb[40:], 4)) * 4096}.list(le(sb[14:], 2), "", lines)
	return lines
}

// want describes a directory of the host in the same way.
func want(t interface{ Fatal(...any) }, dir string) map[string]string {
	lines := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		kept := time.Unix(0, 0) // of directories and links, whose times a copy changes
		if info.Mode().IsRegular() {
			kept = info.ModTime()
		}
		line := fmt.Sprintf("%o %d %s", stat.Mode&^0o6000, stat.Nlink, kept.UTC().Format(time.RFC3339Nano))
		switch {
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			line += fmt.Sprintf(" %x", target)
			if err != nil {
				return err
			}
		case !entry.IsDir():
			data, err := os.ReadFile(path)
			line += fmt.Sprintf(" %x", data)
			if err != nil {
				return err
			}
		case stat.Nlink < 2: // some file systems do not count the links of directories
			return fmt.Errorf("%s: cannot tell the links", path)
		}
		lines[strings.TrimPrefix(path, dir)] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestImageEqualsDirectory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		directories := []string{dir}
		for i := range rapid.IntRange(0, 40).Draw(rt, "files") {
			in := rapid.SampledFrom(directories).Draw(rt, "directory")
			path := filepath.Join(in, rapid.StringMatching(`[a-zA-Z.é_-]{1,60}`).Draw(rt, "name")+fmt.Sprint(i))
			var err error
			switch rapid.SampledFrom([]string{"file", "directory", "link", "hard"}).Draw(rt, "kind") {
			case "directory":
				err = os.Mkdir(path, 0o755)
				directories = append(directories, path)
			case "link":
				err = os.Symlink(rapid.StringMatching(`[a-z/.]{1,80}`).Draw(rt, "target"), path)
			case "hard":
				other := filepath.Join(in, fmt.Sprint("other", i))
				if err = os.WriteFile(other, []byte(other), 0o600); err == nil {
					err = os.Link(other, path)
				}
			default:
				size := rapid.SampledFrom([]int{0, 1, 4095, 4096, 4097, 20_000}).Draw(rt, "size")
				err = os.WriteFile(path, bytes.Repeat([]byte{byte(i)}, size), 0o640)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		var image, again bytes.Buffer
		if err := erofs.Write(&image, dir); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want(rt, dir), read(rt, image.Bytes())); diff != "" {
			rt.Fatalf("the image differs from its directory (-directory +image):\n%s", diff)
		}
		if err := erofs.Write(&again, dir); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(image.Bytes(), again.Bytes()) {
			rt.Error("the same directory gave two images")
		}
	})
}

func TestADirectoryOfManyNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a_tool_with_a_rather_long_name_%04d.py", i)), nil,
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	var image bytes.Buffer
	if err := erofs.Write(&image, dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want(t, dir), read(t, image.Bytes())); diff != "" {
		t.Errorf("(-directory +image):\n%s", diff)
	}
}

func TestSetIDBitsAreDropped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "su")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if err := erofs.Write(&image, dir); err != nil {
		t.Fatal(err)
	}
	if line := read(t, image.Bytes())["/su"]; !strings.HasPrefix(line, "100755 ") {
		t.Errorf("got %s, want mode 100755", line)
	}
}

func TestWriteRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	pipe := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(pipe, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"nothing": "/no/such/directory", "a file": file, "a pipe": pipe} {
		if err := erofs.Write(&bytes.Buffer{}, dir); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}
