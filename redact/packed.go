package redact

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"slices"
	"unicode/utf16"
)

// maxInflated is the maximum size to which compressed data is decompressed.
const maxInflated = 1 << 20

// inflated decompresses gzip (RFC 1952) or zlib (RFC 1950). It returns nil for other data, and if
// the result is not readable text. Truncated data is decompressed as far as possible.
func inflated(data []byte) []byte {
	var in io.Reader
	var err error
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b, 8}):
		in, err = gzip.NewReader(bytes.NewReader(data))
	case len(data) > 8 && data[0] == 0x78 && (uint(data[0])<<8|uint(data[1]))%31 == 0:
		in, err = zlib.NewReader(bytes.NewReader(data))
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(in, maxInflated)) // truncated data ends in an error
	if !isReadable(plain) {
		return nil
	}
	return plain
}

// narrowed decodes UTF-16 of either byte order. It returns nil for other data. At least seven of
// ten characters must be ASCII.
func narrowed(data []byte) []byte {
	if len(data) < minIsland {
		return nil
	}
	for at, order := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
		ascii := 0
		for i := at; i < len(data); i += 2 {
			if data[i] == 0 && i^1 < len(data) && isPrintable(data[i^1]) {
				ascii++
			}
		}
		if ascii*20 < len(data)*7 {
			continue
		}
		if len(data)%2 == 1 { // preceding bytes misalign the pairs
			data = append(slices.Clip(data), 0)
		}
		codes := make([]uint16, len(data)/2)
		for i := range codes {
			codes[i] = order.Uint16(data[2*i:])
		}
		return []byte(string(utf16.Decode(codes)))
	}
	return nil
}
