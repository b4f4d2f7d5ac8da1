// Package strictjson decodes JSON that comes from outside of the process. It refuses
// every text that two decoders could read differently.
//
// Names of members are compared exactly. A repeated name, invalid UTF-8, half of
// a surrogate pair, a second value and more than 10,000 levels are errors, at any
// depth and also in parts that are decoded into json.RawMessage.
package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// open has the rules of encoding/json for types, and none of its leniency for text.
var open = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	json.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber)),
)

var closed = json.JoinOptions(open, json.RejectUnknownMembers(true))

// Unmarshal decodes raw, which must be one JSON value without members that into
// does not have. The error is a sentence about the JSON that names no Go type.
func Unmarshal(raw []byte, into any) error {
	return explain(json.Unmarshal(raw, into, closed))
}

// UnmarshalOpen is Unmarshal for documents that others may extend: it ignores
// members that into does not have.
func UnmarshalOpen(raw []byte, into any) error {
	return explain(json.Unmarshal(raw, into, open))
}

// Check returns an error if raw is not one JSON value that all decoders read alike.
func Check(raw []byte) error {
	in := NewDecoder(bytes.NewReader(raw))
	if _, err := in.in.ReadValue(); err != nil {
		return explain(err)
	}
	return in.end()
}

// EachName calls visit with the name of every member of every object in raw, in
// order, and returns the first error.
func EachName(raw []byte, visit func(name string) error) error {
	in := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explain(err)
		}
		// The name is the odd token of an object: its value follows.
		if kind, n := in.StackIndex(in.StackDepth()); kind == '{' && n%2 == 1 {
			if err := visit(token.String()); err != nil {
				return err
			}
		}
	}
}

// A Decoder reads a sequence of JSON values. It is not safe for concurrent use.
type Decoder struct{ in *jsontext.Decoder }

// NewDecoder returns a decoder of the values in r. The caller bounds r.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{jsontext.NewDecoder(r)} }

// Decode is Unmarshal for the next value; io.EOF if there is no other.
func (d *Decoder) Decode(into any) error { return d.decode(into, closed) }

// DecodeOpen is UnmarshalOpen for the next value; io.EOF if there is no other.
func (d *Decoder) DecodeOpen(into any) error { return d.decode(into, open) }

func (d *Decoder) decode(into any, options json.Options) error {
	err := json.UnmarshalDecode(d.in, into, options)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return explain(err)
}

// readNumber keeps the digits of a number that is decoded into a json.Number,
// which the library would read from a string only.
func readNumber(in *jsontext.Decoder, n *stdjson.Number) error {
	if in.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	token, err := in.ReadToken()
	*n = stdjson.Number(token.String())
	return err
}
