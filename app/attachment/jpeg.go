package attachment

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Markers of JPEG (ITU-T T.81, annex B).
const (
	jpegSOI  = 0xd8
	jpegEOI  = 0xd9
	jpegSOS  = 0xda
	jpegAPP0 = 0xe0
	jpegAPPE = 0xee
)

// stripJPEG keeps the segments that show the image: tables, frames and scans, and
// of the applications' own the two that decoders need, in their shortest form.
func stripJPEG(content []byte) ([]byte, error) {
	out := []byte{0xff, jpegSOI}
	rest := content[2:]
	for {
		for len(rest) > 1 && rest[0] == 0xff && rest[1] == 0xff { // fill bytes
			rest = rest[1:]
		}
		if len(rest) < 2 {
			return nil, errTruncated
		}
		if rest[0] != 0xff {
			return nil, fmt.Errorf("no marker where one must stand")
		}
		marker := rest[1]
		if marker == jpegEOI {
			return append(out, 0xff, jpegEOI), nil
		}
		if len(rest) < 4 {
			return nil, errTruncated
		}
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if size < 2 || size+2 > len(rest) {
			return nil, errTruncated
		}
		segment := rest[:2+size]
		rest = rest[2+size:]
		switch {
		case marker == jpegSOS:
			n := scanLength(rest)
			out = append(append(out, segment...), rest[:n]...)
			rest = rest[n:]
		case marker == jpegAPP0 && bytes.HasPrefix(segment[4:], []byte("JFIF\x00")) && size >= 16:
			// Version, units and density; no thumbnail.
			out = append(append(append(out, 0xff, jpegAPP0, 0, 16), segment[4:16]...), 0, 0)
		case marker == jpegAPPE && bytes.HasPrefix(segment[4:], []byte("Adobe")) && size >= 14:
			out = append(append(out, 0xff, jpegAPPE, 0, 14), segment[4:16]...)
		case marker >= 0xc0 && marker <= 0xcf, marker == 0xdb, marker == 0xdd:
			out = append(out, segment...)
		}
	}
}

// scanLength returns how far the compressed data of a scan go: up to a marker that
// is neither a stuffed byte nor a restart.
func scanLength(data []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(data[at:], 0xff)
		if i < 0 || at+i+1 >= len(data) {
			return len(data)
		}
		next := data[at+i+1]
		if next != 0 && (next < 0xd0 || next > 0xd7) {
			return at + i
		}
		at += i + 2
	}
}
