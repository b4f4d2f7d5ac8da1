package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// kind is what sort of JSON value some bytes hold, by their first character.
type kind string

const (
	kindMissing kind = "missing"
	kindNull    kind = "null"
	kindObject  kind = "an object"
	kindArray   kind = "a list"
	kindString  kind = "text"
	kindBool    kind = "true or false"
	kindNumber  kind = "a number"
)

func kindOf(raw json.RawMessage) kind {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return kindMissing
	}
	switch raw[0] {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case 't', 'f':
		return kindBool
	case 'n':
		return kindNull
	default:
		return kindNumber
	}
}

// checkShape walks one JSON value and returns an error for content that two parsers could
// read differently or fail on: duplicate keys in an object, keys with hidden characters or
// prompt injection, nesting beyond maxDepth, and data after the value.
func checkShape(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := checkValue(dec, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the definition is not JSON: it ends too early")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the definition is not JSON: something follows it")
	}
	return nil
}

func checkValue(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return fmt.Errorf("the definition is not JSON: %w", err)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("the definition is nested more than %d levels deep", maxDepth)
	}
	var seen map[string]bool
	if open == '{' {
		seen = map[string]bool{}
	}
	for dec.More() {
		if seen != nil {
			if err := checkKey(dec, seen); err != nil {
				return err
			}
		}
		if err := checkValue(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return fmt.Errorf("the definition is not JSON: %w", err)
	}
	return nil
}

func checkKey(dec *json.Decoder, seen map[string]bool) error {
	token, err := dec.Token()
	if err != nil {
		return fmt.Errorf("the definition is not JSON: %w", err)
	}
	key, ok := token.(string)
	if !ok {
		return fmt.Errorf("the definition is not JSON: a key is not text")
	}
	if _, hidden := stripHidden(key); hidden > 0 {
		return fmt.Errorf("the definition has hidden characters in the key %s", Quote(key)) // a key cannot be cleaned: arguments use it
	}
	if addressesModel(key) {
		return fmt.Errorf("the definition has a key that speaks to the model")
	}
	if seen[key] {
		return fmt.Errorf("the definition has the key %s twice in one object", Quote(key))
	}
	seen[key] = true
	return nil
}
