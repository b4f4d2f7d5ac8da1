package gvisor

import "google.golang.org/protobuf/encoding/protowire"

// field is the content of one field of a protocol buffer, of type BytesType or
// VarintType; the other one of bytes and number is zero.
type field struct {
	bytes  []byte
	number uint64
}

// find returns the last field of a message with this number and type, as the
// encoding demands for a field that appears more than once; a missing one is zero.
func find(message []byte, number protowire.Number, kind protowire.Type) (found field, err error) {
	for len(message) > 0 {
		id, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return field{}, protowire.ParseError(n)
		}
		content := message[n:]
		size := protowire.ConsumeFieldValue(id, typ, content)
		if size < 0 {
			return field{}, protowire.ParseError(size)
		}
		message = content[size:]
		if id != number || typ != kind {
			continue
		}
		// The field is whole, as ConsumeFieldValue has found, so these cannot fail.
		switch typ {
		case protowire.BytesType:
			found.bytes, _ = protowire.ConsumeBytes(content)
		case protowire.VarintType:
			found.number, _ = protowire.ConsumeVarint(content)
		}
	}
	return found, nil
}

func bytesField(message []byte, number protowire.Number) ([]byte, error) {
	f, err := find(message, number, protowire.BytesType)
	return f.bytes, err
}

func varintField(message []byte, number protowire.Number) (uint64, error) {
	f, err := find(message, number, protowire.VarintType)
	return f.number, err
}
