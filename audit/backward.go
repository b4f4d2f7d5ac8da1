package audit

import (
	"bytes"
	"os"
)

// blockBytes is how much of a file is read at a time, from its end.
const blockBytes = 256 << 10

// eachLineBackward calls visit for each whole line of a file, the last one first, until it returns
// false. Lines that wanted returns false for, several at a time, are skipped; nil wants all.
func eachLineBackward(path string, wanted func(lines []byte) bool,
	visit func(line []byte) (more bool, err error)) error {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var rest []byte // the start of a line whose end was read
	for end := info.Size(); end > 0; {
		start := max(0, end-blockBytes)
		block := make([]byte, end-start, end-start+int64(len(rest)))
		if _, err := f.ReadAt(block, start); err != nil {
			return err
		}
		if end == info.Size() { // text after the last newline is an incomplete line
			block = block[:bytes.LastIndexByte(block, '\n')+1]
		}
		block = append(block, rest...)
		if first := bytes.IndexByte(block, '\n') + 1; first > 0 && wanted != nil && !wanted(block[first:]) {
			block = block[:first]
		}
		for {
			block = bytes.TrimSuffix(block, []byte("\n"))
			at := bytes.LastIndexByte(block, '\n')
			if at < 0 {
				break
			}
			if more, err := visit(block[at+1:]); err != nil || !more {
				return err
			}
			block = block[:at+1]
		}
		rest, end = bytes.Clone(block), start
	}
	if len(rest) > 0 {
		_, err = visit(rest)
	}
	return err
}
