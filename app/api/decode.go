package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/misfit"
	"github.com/airlock-mcp/airlock/internal/schema"
)

// decode reads one JSON object that every reader would read alike, with no other
// members than those of into.
func decode(raw []byte, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("the body is empty: send a JSON object")
	}
	value, err := schema.Decode(raw)
	if err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return errors.New("the body is no JSON object")
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := misfit.JSON(in.Decode(into)); err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return nil
}
