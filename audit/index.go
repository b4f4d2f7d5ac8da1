package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// A full file of the log has an index in the same directory. For each value of an indexed member, the index has the
// offsets of the lines with that value, so that the records of a rare caller are found without reading the file. The
// index is derived from the file: without it, readers read the file, and Verify compares the two. An index
// consists of indexTop, the size of the file, and pairs of a hash and an offset in ascending order.
const (
	indexPrefix = "index-" // in place of segmentPrefix and segmentSuffix
	indexTop    = "airlock audit index 1\n"
	headerBytes = len(indexTop) + 8
	pairBytes   = 8
	// denseLines is the number of lines above which a value has a single pair, with the offset dense:
	// reading the file finds a page of such a value soon.
	denseLines = 64
	dense      = math.MaxUint32
)

// isListed reports whether records are listed by the member with a name.
func isListed(name string) bool {
	switch name {
	case "detail", "kind", "outcome", "principal", "run_id", "server_id", "tool_name":
		return true
	}
	return false
}

// isIndexed reports whether a word is a whole indexed member.
func isIndexed(word string) bool {
	name, value, ok := strings.Cut(word, `":"`)
	return ok && strings.HasPrefix(name, `"`) && isListed(name[1:]) &&
		strings.IndexAny(value, `"\`) == len(value)-1 && strings.HasSuffix(value, `"`)
}

// eachListed calls visit for each indexed member of a line, with its name and quotes. Members inside of
// arguments are included, which costs a reader a line that does not match.
func eachListed(line []byte, visit func(member []byte)) {
	for at := 0; ; at++ {
		colon := bytes.IndexByte(line[at:], ':')
		if colon < 0 {
			return
		}
		at += colon
		if at == 0 || line[at-1] != '"' || at+1 == len(line) || line[at+1] != '"' {
			continue
		}
		begin := bytes.LastIndexByte(line[:at-1], '"')
		length := bytes.IndexByte(line[at+2:], '"')
		if begin >= 0 && length >= 0 && isListed(string(line[begin+1:at-1])) {
			visit(line[begin : at+2+length+1])
		}
	}
}

func indexPath(segment string) string {
	dir, name := filepath.Split(segment)
	number := strings.TrimSuffix(strings.TrimPrefix(name, segmentPrefix), segmentSuffix)
	return filepath.Join(dir, indexPrefix+number)
}

// hashOf is the hash of a member with its name and quotes.
func hashOf(member []byte) uint32 {
	h := fnv.New32a()
	h.Write(member)
	return h.Sum32()
}

// makeIndex returns the index of a full file.
func makeIndex(path string) ([]byte, error) {
	var pairs []uint64
	begin := int64(0)
	err := eachLine(path, 0, func(_ int, line []byte) error {
		eachListed(line, func(member []byte) {
			pairs = append(pairs, uint64(hashOf(member))<<32|uint64(begin))
		})
		begin += int64(len(line)) + 1
		return nil
	})
	if err == nil && begin >= dense {
		err = errors.New("the file is too long for an index")
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	text := binary.BigEndian.AppendUint64([]byte(indexTop), uint64(begin))
	for len(pairs) > 0 {
		hash := pairs[0] >> 32
		n := sort.Search(len(pairs), func(i int) bool { return pairs[i]>>32 > hash })
		if n > denseLines {
			text = binary.BigEndian.AppendUint64(text, hash<<32|dense)
		} else {
			for _, pair := range pairs[:n] {
				text = binary.BigEndian.AppendUint64(text, pair)
			}
		}
		pairs = pairs[n:]
	}
	return text, nil
}

// indexer writes the indexes of full files in a separate goroutine, because the indexes of a long log take minutes,
// for which neither a sync nor a signature may wait.
type indexer struct {
	dir, opened string        // the log, and its active file at the start
	due         chan struct{} // capacity 1
	stop, done  chan struct{}
}

func startIndexer(dir, opened string) *indexer {
	x := &indexer{dir: dir, opened: opened, due: make(chan struct{}, 1), stop: make(chan struct{}),
		done: make(chan struct{})}
	go x.run()
	return x
}

// wake has the indexer look for full files. It does not wait.
func (x *indexer) wake() {
	select {
	case x.due <- struct{}{}:
	default:
	}
}

// close indexes the files that have become full since the start, and ends the indexer.
func (x *indexer) close() {
	close(x.stop)
	<-x.done
}

func (x *indexer) run() {
	defer close(x.done)
	from := ""
	for {
		select {
		case <-x.due:
			from = writeIndexes(x.dir, from, x.stop)
		case <-x.stop:
			writeIndexes(x.dir, max(from, x.opened), nil)
			return
		}
	}
}

// writeIndexes writes the missing indexes of the full files from a path on, until stop is closed. It returns the path
// of the first file that it has not looked at, and no error: files without an index are read.
func writeIndexes(dir, from string, stop <-chan struct{}) (next string) {
	list, err := segments(dir)
	if err != nil {
		return from
	}
	for i := 0; i+1 < len(list); i++ {
		select {
		case <-stop:
			return list[i].path
		default:
		}
		if _, err := os.Lstat(indexPath(list[i].path)); list[i].path < from || err == nil {
			continue
		}
		if text, err := makeIndex(list[i].path); err == nil {
			_ = files.WriteFile(indexPath(list[i].path), text, 0o600)
		}
	}
	if len(list) == 0 {
		return from
	}
	return list[len(list)-1].path
}

// lookup returns the offsets of the lines of a full file that can have one of the words, in ascending
// order. ok is false if the caller has to read the file, because a word is not indexed or in many
// lines, or because the file has no index.
func lookup(path string, words []string) (offsets []int64, ok bool) {
	if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return !isIndexed(word) }) {
		return nil, false
	}
	f, err := openPlain(indexPath(path), os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false
	}
	header := make([]byte, headerBytes)
	of, statErr := os.Lstat(path)
	if _, err := f.ReadAt(header, 0); err != nil || statErr != nil || !bytes.Equal(header,
		binary.BigEndian.AppendUint64([]byte(indexTop), uint64(of.Size()))) {
		return nil, false
	}
	n := int(info.Size()-int64(headerBytes)) / pairBytes
	pair := func(i int) uint64 {
		var text [pairBytes]byte
		if _, readErr := f.ReadAt(text[:], int64(headerBytes+i*pairBytes)); readErr != nil {
			err = readErr
		}
		return binary.BigEndian.Uint64(text[:])
	}
	for _, word := range words {
		hash := uint64(hashOf([]byte(word)))
		for i := sort.Search(n, func(i int) bool { return pair(i)>>32 >= hash }); i < n; i++ {
			p := pair(i)
			if p>>32 != hash {
				break
			}
			if p&dense == dense {
				return nil, false
			}
			offsets = append(offsets, int64(p&dense))
		}
	}
	slices.Sort(offsets)
	return slices.Compact(offsets), err == nil
}

// eachLineAt calls visit for the lines that begin at the offsets, the last one first, until it
// returns false.
func eachLineAt(path string, offsets []int64, visit func(line []byte) (bool, error)) (more bool, err error) {
	if len(offsets) == 0 {
		return true, nil
	}
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, at := range slices.Backward(offsets) {
		line, err := lineAt(f, at)
		if err != nil {
			return false, err
		}
		if more, err := visit(line); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// lineAt returns the line that begins at an offset.
func lineAt(f *os.File, at int64) ([]byte, error) {
	for size := int64(4 << 10); size <= 4*maxLine; size *= 4 {
		text := make([]byte, size)
		n, err := f.ReadAt(text, at)
		if end := bytes.IndexByte(text[:n], '\n'); end >= 0 {
			return text[:end], nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return nil, errNoRecord
}

// checkIndex adds a finding if a full file has an index that is not made of it: pages could omit
// records.
func (v *verifier) checkIndex(s segment) {
	text, err := readPlain(indexPath(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	want, makeErr := makeIndex(s.path)
	if err := errors.Join(err, makeErr); err != nil || !bytes.Equal(text, want) {
		v.find(Finding{filepath.Base(indexPath(s.path)), 0, 0,
			"it does not fit the file that it is the index of, so lists of records may be incomplete: remove it"})
	}
}
