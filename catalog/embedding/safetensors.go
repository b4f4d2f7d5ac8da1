package embedding

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of a safetensors file and its vocabulary.
const (
	maxSafeHeader = 1 << 20  // bytes
	maxVocabulary = 64 << 20 // bytes
)

// tensor is how a safetensors file describes a matrix.
type tensor struct {
	Type    string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// readSafetensors reads the one matrix of a file, and the words of its rows from a
// tokenizer's file.
func readSafetensors(r io.Reader, size int64, vocabulary string) (*Table, error) {
	matrix, headerSize, err := matrixOf(r, size)
	if err != nil {
		return nil, err
	}
	rows, columns := matrix.Shape[0], matrix.Shape[1]
	width := int64(4)
	if matrix.Type != "F32" {
		width = 2
	}
	if rows < 1 || columns < 1 || rows > maxTableWords || columns > maxDimensions || rows*columns > maxTableSize {
		return nil, fmt.Errorf("a matrix of %d × %d is empty or too large", rows, columns)
	}
	if matrix.Offsets[0] < 0 || matrix.Offsets[1]-matrix.Offsets[0] != rows*columns*width ||
		8+headerSize+matrix.Offsets[1] > size {
		return nil, errors.New("the matrix is not where the header says")
	}
	if _, err := io.CopyN(io.Discard, r, matrix.Offsets[0]); err != nil {
		return nil, err
	}
	raw := make([]byte, rows*columns*width)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, err
	}
	t := &Table{dimensions: int(columns), values: make([]float32, rows*columns)}
	for i := range t.values {
		t.values[i] = valueAt(raw, i, matrix.Type)
	}
	if !finite(t.values) {
		return nil, errors.New("a value is not a number")
	}
	t.rows, err = readVocabulary(vocabulary, rows)
	return t, err
}

// matrixOf reads the header, and returns the matrix that it describes.
func matrixOf(r io.Reader, size int64) (tensor, int64, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return tensor{}, 0, errors.New("it ends before its header")
	}
	headerSize := binary.LittleEndian.Uint64(prefix[:])
	if headerSize > maxSafeHeader || int64(headerSize) > size-8 {
		return tensor{}, 0, errors.New("its header is too large")
	}
	raw := make([]byte, headerSize)
	if _, err := io.ReadFull(r, raw); err != nil {
		return tensor{}, 0, err
	}
	var header map[string]json.RawMessage
	if err := strictjson.UnmarshalOpen(raw, &header); err != nil {
		return tensor{}, 0, errors.New("its header is not JSON")
	}
	delete(header, "__metadata__")
	var found []tensor
	for name, described := range header {
		var one tensor
		if err := strictjson.UnmarshalOpen(described, &one); err != nil {
			return tensor{}, 0, fmt.Errorf("the tensor %q is not described", name)
		}
		if len(one.Shape) == 2 && len(one.Offsets) == 2 {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		return tensor{}, 0, fmt.Errorf("it has %d matrices, not one", len(found))
	}
	switch found[0].Type {
	case "F32", "F16", "BF16":
		return found[0], int64(headerSize), nil
	}
	return tensor{}, 0, fmt.Errorf("its values are %q, not F32, F16 or BF16", found[0].Type)
}

// valueAt reads one little-endian value.
func valueAt(raw []byte, i int, kind string) float32 {
	switch kind {
	case "F32":
		return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	case "BF16":
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
	default:
		return half(binary.LittleEndian.Uint16(raw[2*i:]))
	}
}

// half converts a 16-bit float of IEEE 754.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&0x1f), uint32(bits&0x3ff)
	switch exponent {
	case 0:
		value := float32(fraction) / (1 << 24)
		if sign != 0 {
			value = -value
		}
		return value
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// readVocabulary reads the words of the rows: model.vocab of a tokenizer's file, an
// object of words and rows (WordPiece, BPE), or a list of words with their scores
// (Unigram).
func readVocabulary(path string, rows int64) (map[string]int32, error) {
	file, err := store.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the words of the rows: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxVocabulary+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxVocabulary:
		return nil, fmt.Errorf("the words of the rows: %q has more than %d bytes", path, maxVocabulary)
	}
	var tokenizer struct {
		Model struct {
			Vocab json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	if err := strictjson.UnmarshalOpen(raw, &tokenizer); err != nil {
		return nil, fmt.Errorf("the words of the rows: %q is not JSON", path)
	}
	words := map[string]int32{}
	if strictjson.UnmarshalOpen(tokenizer.Model.Vocab, &words) != nil {
		var list [][]any
		if err := strictjson.UnmarshalOpen(tokenizer.Model.Vocab, &list); err != nil {
			return nil, fmt.Errorf("the words of the rows: %q has no model.vocab", path)
		}
		clear(words)
		for i, entry := range list {
			if len(entry) > 0 {
				if word, ok := entry[0].(string); ok {
					words[word] = int32(i)
				}
			}
		}
	}
	for word, row := range words {
		if row < 0 || int64(row) >= rows {
			return nil, fmt.Errorf("the words of the rows: %q has the row %d, and there are %d", word, row, rows)
		}
	}
	if len(words) == 0 {
		return nil, errors.New("the words of the rows: there are none")
	}
	return words, nil
}
