package gvisor

import (
	"encoding/binary"
	"errors"
)

var errMalformed = errors.New("malformed protocol buffer")

// The wire types of protocol buffers (Protocol Buffers documentation,
// "Encoding") that can be told from one another without a schema.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// field is one field of a message. One of number and bytes is set.
type field struct {
	id     uint64
	kind   uint64
	number uint64
	bytes  []byte
}

// nextField splits the first field off a message.
func nextField(message []byte) (f field, rest []byte, err error) {
	key, n := binary.Uvarint(message)
	if n <= 0 {
		return f, nil, errMalformed
	}
	message = message[n:]
	f.id, f.kind = key>>3, key&7
	switch f.kind {
	case wireVarint:
		if f.number, n = binary.Uvarint(message); n <= 0 {
			return f, nil, errMalformed
		}
		return f, message[n:], nil
	case wireBytes:
		size, n := binary.Uvarint(message)
		if n <= 0 || size > uint64(len(message)-n) {
			return f, nil, errMalformed
		}
		f.bytes, rest = message[n:n+int(size)], message[n+int(size):]
		return f, rest, nil
	case wireFixed64, wireFixed32:
		width := 8
		if f.kind == wireFixed32 {
			width = 4
		}
		if len(message) < width {
			return f, nil, errMalformed
		}
		return f, message[width:], nil
	}
	return f, nil, errMalformed
}

// find returns the last field with this number and kind, as the encoding
// demands for a field that appears more than once; a missing one is zero.
func find(message []byte, id, kind uint64) (found field, err error) {
	for len(message) > 0 {
		var f field
		if f, message, err = nextField(message); err != nil {
			return field{}, err
		}
		if f.id == id && f.kind == kind {
			found = f
		}
	}
	return found, nil
}

func bytesField(message []byte, id uint64) ([]byte, error) {
	f, err := find(message, id, wireBytes)
	return f.bytes, err
}

func varintField(message []byte, id uint64) (uint64, error) {
	f, err := find(message, id, wireVarint)
	return f.number, err
}
