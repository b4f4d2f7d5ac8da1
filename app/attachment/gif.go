package attachment

import (
	"encoding/binary"
	"errors"
)

// Blocks of GIF (Graphics Interchange Format 89a, section 17).
const (
	gifImage     = 0x2c
	gifExtension = 0x21
	gifTrailer   = 0x3b
	gifControl   = 0xf9 // a graphic control extension: delay and transparency
	gifApp       = 0xff // an application's extension
	gifHeader    = 13
)

const gifLoop = "NETSCAPE2.0" // the one application's extension that shows: how often an animation runs

// stripGIF keeps the header, the images with their controls, and the loop count. It removes
// comments, other extensions and data after the trailer.
func stripGIF(content []byte) ([]byte, error) {
	var out []byte
	err := walkGIF(content, func(block []byte) {
		if block[0] == gifExtension {
			switch {
			case block[1] == gifControl && len(block) >= 8:
				block = append(block[:7:7], 0)
			case block[1] == gifApp && len(block) >= 19 && string(block[3:14]) == gifLoop:
				block = append(append([]byte{gifExtension, gifApp, 11}, gifLoop...), 3, 1, block[16], block[17], 0)
			default:
				return
			}
		}
		out = append(out, block...)
	})
	if err != nil {
		return nil, err
	}
	return append(out, gifTrailer), nil
}

// sizeOfGIF returns the size of a GIF and how many pixels all its images have.
func sizeOfGIF(content []byte) (width, height, pixels int, err error) {
	err = walkGIF(content, func(block []byte) {
		if block[0] == gifImage {
			pixels += int(binary.LittleEndian.Uint16(block[5:])) * int(binary.LittleEndian.Uint16(block[7:]))
		}
	})
	if err != nil {
		return 0, 0, 0, err
	}
	return int(binary.LittleEndian.Uint16(content[6:])), int(binary.LittleEndian.Uint16(content[8:])), pixels, nil
}

// walkGIF calls each with the header, its colour table included, and with every block up
// to the trailer. It ignores data after the trailer.
func walkGIF(content []byte, each func(block []byte)) error {
	if len(content) < gifHeader {
		return errTruncated
	}
	size := gifHeader + colourTable(content[10])
	if size > len(content) {
		return errTruncated
	}
	each(content[:size])
	for rest := content[size:]; len(rest) > 0; rest = rest[size:] {
		switch {
		case rest[0] == gifTrailer:
			return nil
		case rest[0] == gifExtension && len(rest) > 2:
			size = 2
		case rest[0] == gifImage && len(rest) > 10:
			size = 11 + colourTable(rest[9])
		default:
			return errors.New("an unknown block")
		}
		if size = subBlocks(rest, size); size < 0 {
			return errTruncated
		}
		each(rest[:size])
	}
	return errTruncated
}

// colourTable returns how many bytes the table takes that a field of flags announces.
func colourTable(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// subBlocks returns the offset after the list of sub-blocks at an offset, or -1 if the
// list is incomplete.
func subBlocks(block []byte, at int) int {
	for at < len(block) {
		n := int(block[at])
		at += n + 1
		if n == 0 {
			return at
		}
	}
	return -1
}
