package attachment

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// pngKept are the chunks beside the pixels that change how an image looks, with
// the most bytes of each (PNG Specification, third edition, section 11).
var pngKept = map[string]int{"IHDR": 13, "PLTE": 768, "tRNS": 256, "gAMA": 4, "sRGB": 1, "pHYs": 9}

// ancillary is the bit of the first letter of a chunk's name that is set if the image can be shown
// without the chunk (section 5.4).
const ancillary = 0x20

// stripPNG keeps the chunks that show the image, and of the pixels the one
// compressed stream that they are. Animation, text, profiles and times go.
func stripPNG(content []byte) ([]byte, error) {
	out, pixels := []byte(pngMagic), []byte(nil)
	for rest := content[len(pngMagic):]; ; {
		if len(rest) < 12 {
			return nil, errTruncated
		}
		size, kind := int(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		if size > len(rest)-12 {
			return nil, errTruncated
		}
		body := rest[8 : 8+size]
		damaged := crc32.ChecksumIEEE(rest[4:8+size]) != binary.BigEndian.Uint32(rest[8+size:])
		rest = rest[12+size:]
		switch most, kept := pngKept[kind]; {
		case damaged && kind[0]&ancillary != 0: // the image can be shown without it
		case damaged:
			return nil, errors.New("a chunk is damaged")
		case kind == "IDAT":
			pixels = append(pixels, body...)
		case kind == "IEND":
			pixels, err := wholeStream(pixels)
			if err != nil {
				return nil, err
			}
			return appendChunk(appendChunk(out, "IDAT", pixels), "IEND", nil), nil
		case kept && size <= most && len(pixels) == 0:
			out = appendChunk(out, kind, body)
		}
	}
}

// wholeStream returns the compressed stream at the start of data, without trailing bytes.
func wholeStream(data []byte) ([]byte, error) {
	in := bytes.NewReader(data)
	stream, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	// The image may be too large to be decoded, but need not be decompressed whole
	// to know that.
	n, err := io.Copy(io.Discard, io.LimitReader(stream, 2*maxDecoded+1))
	if err != nil {
		return nil, err
	}
	if n > 2*maxDecoded {
		return data, nil
	}
	return data[:len(data)-in.Len()], nil
}

func appendChunk(out []byte, kind string, body []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	start := len(out)
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[start:]))
}
