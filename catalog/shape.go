package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
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

// checkShape refuses a definition that two decoders could read differently, that is
// nested more than maxDepth levels deep, or that has a key with hidden characters or a prompt injection.
func checkShape(raw []byte) error {
	if err := strictjson.Check(raw); err != nil {
		return fmt.Errorf("the definition cannot be read: %w", err)
	}
	if canon.IsDeeper(raw, maxDepth) {
		return fmt.Errorf("the definition is nested more than %d levels deep", maxDepth)
	}
	return strictjson.EachName(raw, checkKey)
}

func checkKey(key string) error {
	if _, hidden := stripHidden(key); hidden > 0 {
		// a key cannot be cleaned: arguments use it
		return fmt.Errorf("the definition has hidden characters in the key %s", Quote(key))
	}
	if addressesModel(key) {
		return errors.New("the definition has a key with instructions for the model")
	}
	return nil
}
