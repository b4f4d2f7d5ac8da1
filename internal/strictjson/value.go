package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of a text that Value decodes. They are far above what honest tools use.
const (
	MaxDepth    = 128     // nested arrays and objects
	MaxValues   = 4 << 20 // values of all kinds together
	maxExponent = 400     // of a number, either sign; a double ends near 308
	maxDigits   = 1000    // characters of one number
)

// Value decodes raw, which must be one JSON value, without a type for it. It
// returns nil, a bool, a string, a json.Number with all digits, a []any or a
// map[string]any. Texts beyond the limits above are errors.
func Value(raw []byte) (any, error) {
	d := decoder{Decoder: NewDecoder(bytes.NewReader(raw))}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	return v, d.end()
}

// end returns an error if another value follows.
func (d *Decoder) end() error {
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		return errAfter
	}
	return nil
}

type decoder struct {
	*Decoder
	values int
}

func (d *decoder) value(depth int) (any, error) {
	token, err := d.in.ReadToken()
	if err != nil {
		return nil, explain(err)
	}
	if d.values++; d.values > MaxValues {
		return nil, fmt.Errorf("the JSON has more than %d values", MaxValues)
	}
	switch token.Kind() {
	case '{', '[':
		if depth == MaxDepth {
			return nil, fmt.Errorf("the JSON is nested more than %d deep", MaxDepth)
		}
		if token.Kind() == '[' {
			return d.array(depth + 1)
		}
		return d.object(depth + 1)
	case '0':
		n := json.Number(token.String())
		return n, checkNumber(n)
	case '"':
		return token.String(), nil
	case 'n':
		return nil, nil
	}
	return token.Bool(), nil
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	for d.in.PeekKind() != ']' {
		item, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.in.ReadToken()
	return items, explain(err)
}

func (d *decoder) object(depth int) (any, error) {
	members := map[string]any{}
	for d.in.PeekKind() != '}' {
		token, err := d.in.ReadToken()
		if err != nil {
			return nil, explain(err)
		}
		name := token.String()
		if members[name], err = d.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := d.in.ReadToken()
	return members, explain(err)
}

// checkNumber bounds what exact arithmetic on the number can cost.
func checkNumber(n json.Number) error {
	text := string(n)
	if len(text) > maxDigits {
		return fmt.Errorf("the JSON has a number of more than %d characters", maxDigits)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, err := strconv.Atoi(text[i+1:])
		if err != nil || exp > maxExponent || exp < -maxExponent {
			return fmt.Errorf("the JSON has a number whose exponent is beyond %d", maxExponent)
		}
	}
	return nil
}
