package attachment

import (
	"encoding/binary"
	"errors"
)

// webpKept are the chunks of WebP that show the image (RFC 9649, section 2.7).
// An animation is not decoded here.
var webpKept = map[string]bool{"VP8 ": true, "VP8L": true, "VP8X": true, "ALPH": true}

const webpShown = 0x10 // of the flags of VP8X: transparency; all others announce what is left out

// stripWebP keeps the chunks that show the image: profiles, Exif and XMP go.
func stripWebP(content []byte) ([]byte, error) {
	return keepChunks(content, func(kind string, body []byte) []byte {
		switch {
		case !webpKept[kind]:
			return nil
		case kind == "VP8X" && len(body) == 10:
			return append([]byte{body[0] & webpShown, 0, 0, 0}, body[4:]...)
		}
		return body
	})
}

// sizeOfWebP returns the size of the largest picture that the chunks hold (RFC 6386,
// section 9.1; RFC 9649, section 3.4).
func sizeOfWebP(content []byte) (width, height int, err error) {
	_, err = keepChunks(content, func(kind string, body []byte) []byte {
		w, h := 0, 0
		switch {
		case kind == "VP8 " && len(body) >= 10:
			w, h = int(binary.LittleEndian.Uint16(body[6:])&0x3fff), int(binary.LittleEndian.Uint16(body[8:])&0x3fff)
		case kind == "VP8L" && len(body) >= 5:
			bits := binary.LittleEndian.Uint32(body[1:])
			w, h = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
		}
		width, height = max(width, w), max(height, h)
		return body
	})
	return width, height, err
}

// cleanWAV keeps the format and the samples: no tags, no pictures.
func cleanWAV(content []byte) ([]byte, error) {
	return keepChunks(content, func(kind string, body []byte) []byte {
		if kind == "fmt " || kind == "data" || kind == "fact" && len(body) <= 16 {
			return body
		}
		return nil
	})
}

// keepChunks rewrites a RIFF file with the result of keep for each chunk; nil removes a
// chunk. Data after the end is removed.
func keepChunks(content []byte, keep func(kind string, body []byte) []byte) ([]byte, error) {
	end := 8 + int64(binary.LittleEndian.Uint32(content[4:]))
	if end > int64(len(content)) {
		return nil, errTruncated
	}
	out := append([]byte(nil), content[:12]...)
	for rest := content[12:max(end, 12)]; len(rest) > 0; {
		if len(rest) < 8 {
			return nil, errTruncated
		}
		size := int64(binary.LittleEndian.Uint32(rest[4:]))
		if size > int64(len(rest)-8) {
			return nil, errTruncated
		}
		kind := string(rest[:4])
		if body := keep(kind, rest[8:8+size]); body != nil {
			out = binary.LittleEndian.AppendUint32(append(out, kind...), uint32(len(body)))
			out = append(out, body...)
			if len(body)%2 == 1 {
				out = append(out, 0)
			}
		}
		rest = rest[min(8+size+size%2, int64(len(rest))):]
	}
	if len(out) == 12 {
		return nil, errors.New("it is empty")
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out, nil
}
