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

// maxInflated is the most bytes that compressed data is unpacked to.
const maxInflated = 1 << 20

// inflated unpacks what begins as gzip (RFC 1952) or zlib (RFC 1950) do; nil for
// all else, and for what has no readable text in it. What was cut is unpacked as
// far as it goes.
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
	plain, _ := io.ReadAll(io.LimitReader(in, maxInflated)) // an error is what was cut
	if !isReadable(plain) {
		return nil
	}
	return plain
}

// narrowed is the text that stands in UTF-16, of either order; nil for what is none.
// Seven of ten characters have to be ASCII.
func narrowed(data []byte) []byte {
	if len(data) < 2*minIsland {
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
		if len(data)%2 == 1 { // other bytes before it put the pairs out of step
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
