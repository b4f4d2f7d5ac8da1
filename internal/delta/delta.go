// Package delta writes a stream as its difference to another one that is mostly the same, such as two saved states of
// the memory of one program. It compares blocks of the size of a page with the part of the other stream that they most
// likely come from. The result has long runs of zeros, and is meant to be compressed.
package delta

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// block is how many bytes are compared at once.
const block = 4096

// Base is the stream that others are compared with. Its methods are safe for concurrent use.
type Base struct {
	content io.ReaderAt
	size    int64
	anchors map[uint64]int64 // positions of some of the content, by their hashes
}

// The kinds of records. Each stream ends with recordEnd.
const (
	recordEnd  byte = iota
	recordRaw       // a length, and as many bytes
	recordSame      // an offset in the base and a length: the bytes are those of the base
	recordXor       // as recordDiff, with the bits that differ; only earlier versions have written it
	recordDiff      // an offset in the base, and the differences of a block's words to those of the base
)

// An anchor is a position whose hash ends with anchorBits zeros: about sixteen for each block.
const (
	anchorBits = 8
	anchorSize = 16 // bytes that are hashed
)

// anchor returns the hash of the bytes at the beginning of text, and whether they are an anchor.
func anchor(text []byte) (uint64, bool) {
	first, second := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	if first == second { // as in zeros
		return 0, false
	}
	hash := (first*0x9E3779B97F4A7C15 ^ bits.RotateLeft64(second, 29)) * 0xD6E8FEB86659FD93
	return hash, hash>>(64-anchorBits) == 0
}

// NewBase reads the content and returns it as a base. The content must not change afterwards.
func NewBase(content io.ReaderAt, size int64) (*Base, error) {
	b := &Base{content: content, size: size, anchors: make(map[uint64]int64, size>>anchorBits)}
	text := make([]byte, 1<<20)
	for from := int64(0); from < size; from += int64(len(text) - anchorSize + 1) {
		n, err := content.ReadAt(text, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading the base of a difference: %w", err)
		}
		for i := 0; i+anchorSize <= n; i++ {
			if hash, ok := anchor(text[i:]); ok {
				b.anchors[hash] = from + int64(i)
			}
		}
	}
	return b, nil
}

// Encode writes the difference of a stream to the base.
func (b *Base) Encode(w io.Writer, stream io.Reader) error {
	e := encoder{base: b, w: bufio.NewWriterSize(w, 1<<16)}
	text := make([]byte, block)
	for {
		n, err := io.ReadFull(stream, text)
		if n > 0 {
			if err := e.add(text[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if err := e.flush(); err != nil {
				return err
			}
			if err := e.w.WriteByte(recordEnd); err != nil {
				return err
			}
			return e.w.Flush()
		case err != nil:
			return fmt.Errorf("reading a stream to compare: %w", err)
		}
	}
}

// encoder writes one difference.
type encoder struct {
	base *Base
	w    *bufio.Writer
	next int64 // where in the base the next block most likely is
	from int64 // of the blocks that are the same and not yet written
	same int64 // their length

	candidate, best [block]byte
}

// add writes one block.
func (e *encoder) add(text []byte) error {
	at, equal := e.next, 0
	if len(text) == block {
		equal = e.compare(text, at)
		if equal < block*3/4 {
			at, equal = e.search(text, at, equal)
		}
	}
	if equal == block {
		if e.same > 0 && e.from+e.same != at {
			if err := e.flush(); err != nil {
				return err
			}
		}
		if e.same == 0 {
			e.from = at
		}
		e.same += block
		e.next = at + block
		return nil
	}
	if err := e.flush(); err != nil {
		return err
	}
	if equal < block/4 {
		e.head(recordRaw, int64(len(text)))
		_, err := e.w.Write(text)
		return err
	}
	e.next = at + block
	for i := 0; i < block; i += 8 {
		binary.LittleEndian.PutUint64(e.best[i:],
			binary.LittleEndian.Uint64(text[i:])-binary.LittleEndian.Uint64(e.best[i:]))
	}
	e.head(recordDiff, at)
	_, err := e.w.Write(e.best[:])
	return err
}

// head writes the kind of a record and its numbers.
func (e *encoder) head(kind byte, numbers ...int64) {
	head := []byte{kind}
	for _, n := range numbers {
		head = binary.AppendUvarint(head, uint64(n))
	}
	_, _ = e.w.Write(head) // the writer keeps its error
}

// flush writes the blocks that are the same.
func (e *encoder) flush() error {
	if e.same > 0 {
		e.head(recordSame, e.from, e.same)
		e.same = 0
	}
	return nil
}

// compare returns how many bytes of a block are those at an offset of the base, and keeps these as best.
func (e *encoder) compare(text []byte, at int64) int {
	if !e.base.read(e.best[:], at) {
		return 0
	}
	return alike(text, e.best[:])
}

// search looks for a part of the base with more bytes of the block than equal.
func (e *encoder) search(text []byte, at int64, same int) (int64, int) {
	tried := at
	for i := 0; i+anchorSize <= len(text); i++ {
		hash, ok := anchor(text[i:])
		if !ok {
			continue
		}
		found, ok := e.base.anchors[hash]
		from := found - int64(i)
		if !ok || from == tried || !e.base.read(e.candidate[:], from) {
			continue
		}
		tried = from
		if n := alike(text, e.candidate[:]); n > same {
			at, same, e.best = from, n, e.candidate
			if n == block {
				break
			}
		}
	}
	return at, same
}

// read reads a block of the base, and reports whether there is one.
func (b *Base) read(into []byte, at int64) bool {
	if at < 0 || at+block > b.size {
		return false
	}
	n, _ := b.content.ReadAt(into, at)
	return n == len(into)
}

// alike returns how many bytes of two blocks are in words that are the same, or differ by as much as one of the words
// before: pointers into a region at another address. It returns block only if all bytes are the same.
// Unrelated text also has equal bytes, and its difference compresses worse than the text.
func alike(a, b []byte) (n int) {
	if bytes.Equal(a, b) {
		return block
	}
	var shifts [4]uint64 // the last differences
	next := 0
	for i := 0; i < block; i += 8 {
		switch shift := binary.LittleEndian.Uint64(a[i:]) - binary.LittleEndian.Uint64(b[i:]); shift {
		case 0, shifts[0], shifts[1], shifts[2], shifts[3]:
			n += 8
		default:
			shifts[next%len(shifts)] = shift
			next++
		}
	}
	return n
}

// ErrFormat is returned for a stream that Encode has not written for the base.
var ErrFormat = errors.New("not a difference to this base")

// Decode returns the stream that was encoded as its difference to the base.
func Decode(base io.ReaderAt, difference io.Reader) io.Reader {
	return &decoder{base: base, r: bufio.NewReaderSize(difference, 1<<16)}
}

// decoder reads one difference.
type decoder struct {
	base io.ReaderAt
	r    *bufio.Reader
	part io.Reader // the rest of the current record; nil before the first

	text, theirs [block]byte // what part reads from, and the block of the base that it was made of
}

// Read implements io.Reader.
func (d *decoder) Read(into []byte) (int, error) {
	for {
		if d.part != nil {
			n, err := d.part.Read(into)
			if n > 0 || err != nil && !errors.Is(err, io.EOF) {
				return n, dropEnd(err)
			}
		}
		var err error
		if d.part, err = d.record(); err != nil {
			return 0, err
		}
	}
}

// dropEnd returns nil for the end of a record.
func dropEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// record returns the bytes of the next record, or io.EOF after the last one.
func (d *decoder) record() (io.Reader, error) {
	kind, err := d.r.ReadByte()
	if err != nil {
		return nil, cut(err)
	}
	switch kind {
	case recordEnd:
		if _, err := d.r.ReadByte(); !errors.Is(err, io.EOF) {
			return nil, cmp.Or(err, ErrFormat)
		}
		return nil, io.EOF
	case recordRaw:
		size, err := binary.ReadUvarint(d.r)
		if err != nil || size > block {
			return nil, cut(err)
		}
		return d.bytes(int(size))
	case recordSame:
		from, err := binary.ReadUvarint(d.r)
		size, sizeErr := binary.ReadUvarint(d.r)
		if err := errors.Join(err, sizeErr); err != nil || from > math.MaxInt64 || size > math.MaxInt64 {
			return nil, cut(err)
		}
		return &exact{io.NewSectionReader(d.base, int64(from), int64(size)), int64(size)}, nil
	case recordXor, recordDiff:
		return d.changed(kind)
	}
	return nil, ErrFormat
}

// bytes reads bytes of the difference.
func (d *decoder) bytes(size int) (*bytes.Reader, error) {
	text := d.text[:size]
	if _, err := io.ReadFull(d.r, text); err != nil {
		return nil, cut(err)
	}
	return bytes.NewReader(text), nil
}

// changed reads a block that differs from one of the base.
func (d *decoder) changed(kind byte) (io.Reader, error) {
	at, err := binary.ReadUvarint(d.r)
	if err != nil || at > math.MaxInt64 {
		return nil, cut(err)
	}
	text, theirs := d.text[:], d.theirs[:]
	if _, err := io.ReadFull(d.r, text); err != nil {
		return nil, cut(err)
	}
	if n, _ := d.base.ReadAt(theirs, int64(at)); n < block {
		return nil, ErrFormat
	}
	for i := 0; i < block; i += 8 {
		word, base := binary.LittleEndian.Uint64(text[i:]), binary.LittleEndian.Uint64(theirs[i:])
		if kind == recordXor {
			word ^= base
		} else {
			word += base
		}
		binary.LittleEndian.PutUint64(text[i:], word)
	}
	return bytes.NewReader(text), nil
}

// exact is a reader of as many bytes as it must have.
type exact struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (e *exact) Read(into []byte) (int, error) {
	n, err := e.Reader.Read(into)
	if e.left -= int64(n); e.left > 0 && errors.Is(err, io.EOF) {
		return n, ErrFormat
	}
	return n, err
}

// cut returns the error of a difference that ends too early.
func cut(err error) error {
	if err == nil {
		return ErrFormat
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
