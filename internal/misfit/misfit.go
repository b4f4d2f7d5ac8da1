// Package misfit says in words what is wrong with JSON that was decoded into a
// Go type. The errors of encoding/json name Go types, which mean nothing to
// those who wrote the JSON.
package misfit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// JSON returns an error that says the same as one of encoding/json, in words
// about the JSON alone; nil for nil. An error that is not known stays outside
// of the sentence.
func JSON(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("the whole is %s where %s belongs", article(kind.Value), wanted(kind.Type))
	case errors.As(err, &kind):
		// Or one of its members has it, where the names of those are free.
		return fmt.Errorf("%q has %s where %s belongs", kind.Field, article(kind.Value), wanted(kind.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // it has no type
		return fmt.Errorf("there is no member %s", name)
	}
	return errors.New("it cannot be read")
}

// wanted describes what JSON a Go type is decoded from.
func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in its range"
	}
	return "something else"
}

// article puts the word of encoding/json for a JSON value into a sentence. For a
// number that does not fit it is "number" and its digits.
func article(value string) string {
	switch word, rest, _ := strings.Cut(value, " "); word {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "number":
		if rest == "" {
			return "a number"
		}
		return "the number " + rest
	default:
		return "a " + word
	}
}
