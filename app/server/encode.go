package server

import (
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// Encode writes JSON on one line, with <, > and & as they are.
func Encode(value any) ([]byte, error) {
	text, err := canon.Verbatim(value)
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return text, nil
}
