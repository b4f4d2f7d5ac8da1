package delta_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/airlock-mcp/airlock/internal/delta"
)

// random returns bytes that do not compress, the same for the same seed.
func random(seed uint64, size int) []byte {
	text := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(text)
	return text
}

func encode(t testing.TB, base, text []byte) []byte {
	t.Helper()
	b, err := delta.NewBase(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.Encode(&out, iotest.HalfReader(bytes.NewReader(text))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A stream is restored exactly, and equal blocks make its difference small.
func TestDifference(t *testing.T) {
	const size = 1 << 20
	base := random(1, size)
	changed := bytes.Clone(base)
	for i := 0; i < size; i += 4096 {
		changed[i] ^= 1
	}
	moved := append(random(2, 1001), base...)
	moved = append(moved[:size/2], append(random(3, 4096+5), moved[size/2:]...)...)
	for _, test := range []struct {
		name string
		text []byte
		most int // bytes that are not zero
	}{
		{"empty", nil, 1},
		{"the base", base, 20},
		{"short", []byte("short"), 20},
		{"without its end", base[:size-1], 5000},
		{"a bit of each page", changed, 256 * 10},
		{"moved and interrupted", moved, 5 * 4096},
		{"something else", random(4, size), size * 101 / 100},
		{"zeros", make([]byte, size), 256 * 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			difference := encode(t, base, test.text)
			if n := len(difference) - bytes.Count(difference, []byte{0}); n > test.most {
				t.Errorf("got %d bytes that are not zero of %d, want at most %d", n, len(test.text), test.most)
			}
			decoded := delta.Decode(bytes.NewReader(base), bytes.NewReader(difference))
			got, err := io.ReadAll(iotest.OneByteReader(decoded))
			if err != nil || !bytes.Equal(got, test.text) {
				t.Fatalf("got %d bytes and %v, want %d", len(got), err, len(test.text))
			}
			// It is never shorter without an error.
			for _, end := range []int{0, len(difference) / 2, len(difference) - 1} {
				got, err := io.ReadAll(delta.Decode(bytes.NewReader(base), bytes.NewReader(difference[:end])))
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("cut at %d: got %d bytes and %v", end, len(got), err)
				}
			}
		})
	}
}

// Pointers into a region at another address differ by the same number, which compresses well (issue 29).
func TestDifferenceOfPointers(t *testing.T) {
	base := random(1, 1<<20)
	moved := make([]byte, len(base))
	for i := 0; i < len(base); i += 8 {
		word := binary.LittleEndian.Uint64(base[i:])
		if i%64 > 0 { // an anchor in each line
			word += 0x7f12_3000
		}
		binary.LittleEndian.PutUint64(moved[i:], word)
	}
	difference := encode(t, base, moved)
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(packer.EncodeAll(difference, nil)); n > len(base)/10 {
		t.Errorf("got %d bytes for %d, want a tenth at most", n, len(base))
	}
	got, err := io.ReadAll(delta.Decode(bytes.NewReader(base), bytes.NewReader(difference)))
	if err != nil || !bytes.Equal(got, moved) {
		t.Errorf("got %d bytes and %v, want %d", len(got), err, len(moved))
	}
}

// Records of an earlier version can be read: one with the bits that differ.
func TestDecodeOfAnEarlierVersion(t *testing.T) {
	base := random(1, 4096)
	text := bytes.Clone(base)
	text[7] ^= 0x81
	bits := make([]byte, 4096)
	bits[7] = 0x81
	earlier := slices.Concat([]byte{3, 0}, bits, []byte{0})
	got, err := io.ReadAll(delta.Decode(bytes.NewReader(base), bytes.NewReader(earlier)))
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %d bytes and %v, want the text", len(got), err)
	}
}

// A base that is too short for a difference is an error.
func TestDifferenceToAnotherBase(t *testing.T) {
	base := random(1, 1<<16)
	changed := bytes.Clone(base)
	changed[1<<16-1] ^= 1
	for _, text := range [][]byte{base, changed} {
		difference := encode(t, base, text)
		got, err := io.ReadAll(delta.Decode(bytes.NewReader(base[:1<<15]), bytes.NewReader(difference)))
		if !errors.Is(err, delta.ErrFormat) {
			t.Errorf("got %d bytes and %v, want %v", len(got), err, delta.ErrFormat)
		}
	}
}

func FuzzDecode(f *testing.F) {
	base := random(1, 3*4096)
	f.Add(encode(f, base, base))
	f.Add(encode(f, base, base[5:]))
	f.Add([]byte{2, 0, 5, 0})
	f.Fuzz(func(t *testing.T, difference []byte) {
		r := io.LimitReader(delta.Decode(bytes.NewReader(base), bytes.NewReader(difference)), 1<<20)
		if text, err := io.ReadAll(r); err == nil && len(text) > len(difference)*len(base) {
			t.Errorf("got %d bytes of %d", len(text), len(difference))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	base := random(1, 16<<20)
	like, err := delta.NewBase(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		b.Fatal(err)
	}
	text := append(bytes.Clone(base[100:]), random(2, 4<<20)...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := like.Encode(io.Discard, bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
