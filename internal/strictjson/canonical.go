package strictjson

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the form of RFC 8785 of raw, which must be one JSON value. Numbers are read as
// IEEE 754 doubles, as the RFC demands; a number that no double can hold is an error.
func Canonical(raw []byte) ([]byte, error) {
	text := jsontext.Value(bytes.Clone(raw))
	if err := text.Canonicalize(); err != nil {
		return nil, explain(err)
	}
	// The library writes a number that is too large as the largest double.
	if bytes.Contains(text, []byte("1.7976931348623157e+308")) {
		return text, checkDoubles(raw)
	}
	return text, nil
}

// checkDoubles returns an error if a number in raw is larger than every double.
func checkDoubles(raw []byte) error {
	in := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := in.ReadToken()
		if err != nil {
			return nil // the end, because raw was read before
		}
		if token.Kind() == '0' {
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return errors.New("the JSON has a number beyond the range of a double")
			}
		}
	}
}

// AppendString appends s to text as a JSON string in the form of RFC 8785. Invalid UTF-8 becomes U+FFFD.
func AppendString(text []byte, s string) []byte {
	text, _ = jsontext.AppendQuote(text, s) // the error is about invalid UTF-8 only
	return text
}
