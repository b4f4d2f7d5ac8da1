package api

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// decode decodes a body, which must be a JSON object without members that into does not have.
func decode(raw []byte, into any) error {
	switch raw = bytes.Trim(raw, " \t\r\n"); {
	case len(raw) == 0:
		return errors.New("the body is empty: send a JSON object")
	case raw[0] != '{' && strictjson.Check(raw) == nil:
		return errors.New("the body is not a JSON object")
	case canon.IsDeeper(raw, strictjson.MaxDepth):
		return fmt.Errorf("the body: the JSON is nested more than %d deep", strictjson.MaxDepth)
	}
	if err := strictjson.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}
