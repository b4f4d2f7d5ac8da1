package verb

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// PrintLine writes v as one line of JSON, in which no list is null.
func PrintLine(out io.Writer, v any) error {
	line, err := json.Marshal(withLists(v))
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("printing the output: %w", err)
	}
	return nil
}

// withLists returns a copy of v in which nil slices and maps are empty ones, so that programs
// that read the JSON need not check for null. Values that implement json.Marshaler are not
// changed.
func withLists(v any) any {
	if v == nil {
		return nil
	}
	return filled(reflect.ValueOf(v)).Interface()
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func filled(v reflect.Value) reflect.Value {
	t := v.Type()
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return v
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer:
		return filledBehind(v)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // bytes are a text
			return v
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(filled(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMap(t)
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, filled(v.MapIndex(key)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(t).Elem()
		out.Set(v)
		fillFields(out)
		return out
	}
	return v
}

// fillFields fills the fields of a struct that can be set, including the fields of embedded
// structs.
func fillFields(v reflect.Value) {
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case field.CanSet():
			field.Set(filled(field))
		case v.Type().Field(i).Anonymous && field.Kind() == reflect.Struct:
			fillFields(field)
		}
	}
}

// filledBehind calls filled for the value of an interface or a pointer.
func filledBehind(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	inner := filled(v.Elem())
	out := reflect.New(v.Type()).Elem()
	if v.Kind() == reflect.Interface {
		out.Set(inner)
		return out
	}
	to := reflect.New(v.Type().Elem())
	to.Elem().Set(inner)
	out.Set(to)
	return out
}
