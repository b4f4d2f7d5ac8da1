package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of one JSON text. They are far above what honest tools use.
const (
	MaxDepth    = 128     // nested arrays and objects
	MaxValues   = 4 << 20 // values of all kinds together
	maxExponent = 400     // of a number, either sign; a double ends near 308
	maxDigits   = 1000    // characters of one number
)

// Decode reads one JSON text the way its receiver cannot read differently: it
// refuses what parsers disagree about (a name twice in one object, text that is
// not UTF-8, half a surrogate pair, a second value), and what would cost its
// readers without bound. Numbers stay json.Number, digit for digit.
func Decode(raw []byte) (any, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("the JSON is not valid UTF-8")
	}
	if err := checkSurrogates(raw); err != nil {
		return nil, err
	}
	d := decoder{in: json.NewDecoder(bytes.NewReader(raw))}
	d.in.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the end of the JSON value")
	}
	return v, nil
}

type decoder struct {
	in     *json.Decoder
	values int
}

func (d *decoder) value(depth int) (any, error) {
	token, err := d.in.Token()
	if err != nil {
		return nil, notJSON(err)
	}
	if d.values++; d.values > MaxValues {
		return nil, fmt.Errorf("the JSON has more than %d values", MaxValues)
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == MaxDepth {
			return nil, fmt.Errorf("the JSON is nested more than %d deep", MaxDepth)
		}
		if t == '[' {
			return d.array(depth + 1)
		}
		return d.object(depth + 1)
	case json.Number:
		return t, checkNumber(t)
	default:
		return t, nil
	}
}

func (d *decoder) array(depth int) (any, error) {
	items := []any{}
	for d.in.More() {
		item, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.in.Token()
	return items, notJSON(err)
}

func (d *decoder) object(depth int) (any, error) {
	members := map[string]any{}
	for d.in.More() {
		token, err := d.in.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("the JSON has an object with a name that is no string")
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("the JSON has the name %s twice in one object", quote(name))
		}
		if members[name], err = d.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := d.in.Token()
	return members, notJSON(err)
}

// notJSON hides the decoder's words, which may quote the text.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("the text is not JSON, at byte %d", syntax.Offset)
	default:
		return errors.New("the JSON ends too early")
	}
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

// checkSurrogates refuses \uD800 to \uDFFF outside of a pair: encoding/json
// would read U+FFFD where another parser keeps the half.
func checkSurrogates(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the escaped character
		if i >= len(raw) || raw[i] != 'u' {
			continue
		}
		switch unit := escapedUnit(raw, i); {
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return errors.New("the JSON has half a surrogate pair")
		case unit >= 0xD800 && unit <= 0xDBFF:
			low := i + 5
			if low+1 >= len(raw) || raw[low] != '\\' || raw[low+1] != 'u' {
				return errors.New("the JSON has half a surrogate pair")
			}
			if second := escapedUnit(raw, low+1); second < 0xDC00 || second > 0xDFFF {
				return errors.New("the JSON has half a surrogate pair")
			}
			i = low + 1
		}
	}
	return nil
}

// escapedUnit parses the four hex digits after the u at raw[at]. It returns -1 if they are
// missing.
func escapedUnit(raw []byte, at int) int64 {
	if at+5 > len(raw) {
		return -1
	}
	unit, err := strconv.ParseInt(string(raw[at+1:at+5]), 16, 32)
	if err != nil {
		return -1
	}
	return unit
}
