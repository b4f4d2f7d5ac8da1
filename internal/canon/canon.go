// Package canon makes JSON canonical and digests it, so that equal values have
// equal bytes wherever they were written.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// JSON returns the canonical form of one JSON value (RFC 8785, JSON
// Canonicalization Scheme). Numbers are read as IEEE 754 doubles, as the RFC
// demands; a number that no double can hold is an error.
func JSON(raw []byte) ([]byte, error) {
	if IsDeep(raw) {
		return nil, fmt.Errorf("canonical JSON: %w", ErrDeep)
	}
	out, err := strictjson.Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return out, nil
}

// Exact is JSON for a value that is signed: the error names a number that a double, and so
// the canonical form, would change.
func Exact(raw []byte) ([]byte, error) {
	value, err := strictjson.Value(raw)
	if err == nil {
		err = checkExact(value)
	}
	if err != nil {
		return nil, err
	}
	return JSON(raw)
}

func checkExact(value any) error {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if err := checkExact(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, member := range value {
			if err := checkExact(member); err != nil {
				return err
			}
		}
	case json.Number:
		double, err := value.Float64()
		written, ok := new(big.Rat).SetString(value.String())
		kept, _ := new(big.Rat).SetString(strconv.FormatFloat(double, 'g', -1, 64))
		if err != nil || !ok || written.Cmp(kept) != 0 {
			return fmt.Errorf("the number %s would be changed: write it as a string",
				truncate.Characters(value.String(), 40))
		}
	}
	return nil
}

// MaxDepth is how deep arrays and objects may be inside each other: as deep as
// encoding/json reads them.
const MaxDepth = 10_000

// ErrDeep means that a JSON value has more than MaxDepth levels.
var ErrDeep = fmt.Errorf("it is nested more than %d levels deep", MaxDepth)

// IsDeep reports whether the arrays and objects of a JSON text are nested deeper than
// MaxDepth. The text may be broken.
func IsDeep(raw []byte) bool { return IsDeeper(raw, MaxDepth) }

// IsDeeper is IsDeep for another number of levels.
func IsDeeper(raw []byte, levels int) bool {
	depth := 0
	for at := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			for at++; at < len(raw) && raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
		case '[', '{':
			if depth++; depth > levels {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// maxIndented is the depth up to which JSON is indented. Beyond it, the blanks would grow with the square of the depth.
const maxIndented = 100

// Indent returns JSON with line breaks and indentation, for people. Text that is not JSON, and JSON that is nested more
// than maxIndented levels deep, is returned unchanged.
func Indent(raw []byte) []byte {
	var indented bytes.Buffer
	if IsDeeper(raw, maxIndented) || json.Indent(&indented, raw, "", "  ") != nil {
		return raw
	}
	return indented.Bytes()
}

// Marshal encodes v as canonical JSON.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return JSON(raw)
}

// Verbatim encodes v as json.Marshal does, except that the characters <, >, &, U+2028
// and U+2029 are not escaped. A json.RawMessage in v keeps its bytes if it has no white
// space between its tokens, so that a digest of it is the same after decoding.
func Verbatim(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Pretty encodes v for people: as Verbatim does, with each member on its own line.
func Pretty(v any) (string, error) {
	text, err := Verbatim(v)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return "", err
	}
	return out.String(), nil
}

// Digest returns "sha256:" and the hex SHA-256 of the bytes as they are.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
