package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// explain returns an error of the library as a sentence about the JSON; nil for nil.
// It quotes names of members, never a string of the text.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var syntax *jsontext.SyntacticError
	var form *json.SemanticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	case errors.As(err, &syntax):
		return explainSyntax(syntax)
	case errors.As(err, &form) && errors.Is(form.Err, json.ErrUnknownName):
		return explainName(form)
	case errors.As(err, &form):
		return explainForm(form)
	}
	return errors.New("the JSON cannot be read")
}

func explainSyntax(e *jsontext.SyntacticError) error {
	text := e.Error()
	switch {
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return fmt.Errorf("the JSON has the name %s twice in one object", quote(e.JSONPointer.LastToken()))
	case strings.Contains(text, "invalid surrogate pair"):
		return errors.New("the JSON has half a surrogate pair")
	case strings.Contains(text, "invalid UTF-8"):
		return errors.New("the JSON is not valid UTF-8")
	case strings.Contains(text, "exceeded max depth"):
		return errors.New("the JSON is nested too deeply")
	case strings.Contains(text, "after top-level value"):
		return errAfter
	}
	return fmt.Errorf("the text is not JSON, at byte %d", e.ByteOffset+1)
}

var errAfter = errors.New("there is more after the end of the JSON value")

// explainName is explain for a name that the type does not have.
func explainName(e *json.SemanticError) error {
	name := e.JSONPointer.LastToken()
	if meant := sameLetters(e.GoType, name); meant != "" {
		return fmt.Errorf("unknown member %s: write %q", field(e.JSONPointer), meant)
	}
	return fmt.Errorf("unknown member %s", field(e.JSONPointer))
}

// sameLetters returns the name of a struct's member that differs from name in case only; "" if none does.
func sameLetters(t reflect.Type, name string) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(tag, name) {
			return tag
		}
	}
	return ""
}

// explainForm is explain for a value that is not what the type is decoded from.
func explainForm(e *json.SemanticError) error {
	subject := "the JSON value"
	if e.JSONPointer != "" {
		subject = field(e.JSONPointer)
	}
	got := found(e)
	if want := wanted(e.GoType); want != "" && want != got {
		return fmt.Errorf("%s is %s, not %s", subject, got, want)
	}
	return fmt.Errorf("%s cannot be read", subject)
}

// field returns the place of a member as people write it: "limits.daily[2]".
func field(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return quote(b.String())
}

// quote quotes a name from outside, shortened.
func quote(name string) string {
	const longest = 100
	return fmt.Sprintf("%q", truncate.Characters(name, longest))
}

// found describes the JSON value of an error.
func found(e *json.SemanticError) string {
	switch e.JSONKind {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	case '0':
		if len(e.JSONValue) > 0 && len(e.JSONValue) < 40 {
			return "the number " + string(e.JSONValue)
		}
		return "a number"
	}
	return "something else"
}

// wanted describes the JSON that a Go type is decoded from; "" if that is not known.
func wanted(t reflect.Type) string {
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number in its range"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in its range"
	}
	return ""
}
