package attachment

import (
	"bytes"
	"errors"
)

// cleanMP3 cuts the tags in front of the frames (ID3 version 2) and behind them
// (version 1).
func cleanMP3(content []byte) ([]byte, error) {
	for bytes.HasPrefix(content, []byte("ID3")) {
		if len(content) < 10 {
			return nil, errTruncated
		}
		size := 10
		for i, b := range content[6:10] { // seven bits of each byte
			size += int(b&0x7f) << (7 * (3 - i))
		}
		if content[5]&0x10 != 0 { // a footer
			size += 10
		}
		if size > len(content) {
			return nil, errTruncated
		}
		content = bytes.TrimLeft(content[size:], "\x00")
	}
	if n := len(content); n > 128 && string(content[n-128:n-125]) == "TAG" {
		content = content[:n-128]
	}
	if !isMPEGAudio(content) {
		return nil, errors.New("no frame of sound follows the tag")
	}
	return content, nil
}

// cleanFLAC removes all metadata except the first block, which has the parameters of the
// encoding (RFC 9639, section 8).
func cleanFLAC(content []byte) ([]byte, error) {
	const head, infoSize, last = 4, 34, 0x80
	rest := content[head:]
	var info []byte
	for isLast := false; !isLast; {
		if len(rest) < head {
			return nil, errTruncated
		}
		size := int(rest[1])<<16 | int(rest[2])<<8 | int(rest[3])
		if size > len(rest)-head {
			return nil, errTruncated
		}
		isLast = rest[0]&last != 0
		if rest[0]&^last == 0 && size == infoSize && info == nil {
			info = rest[head : head+size]
		}
		rest = rest[head+size:]
	}
	if info == nil || len(rest) < 2 || rest[0] != 0xff || rest[1]&0xfc != 0xf8 {
		return nil, errors.New("it holds no sound")
	}
	out := append([]byte("fLaC"), last, 0, 0, infoSize)
	return append(append(out, info...), rest...), nil
}
