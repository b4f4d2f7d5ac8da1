package cli

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// parseVerb parses a command line with the model of one verb, which the first word names. It
// exists because building the model of all verbs takes longer than most verbs take to run.
// If understood is false, parseVerb has no effect and the caller must use the whole grammar: for
// help, for verbs that describe other verbs, and for errors, whose messages need all verbs.
func parseVerb(args []string) (verb *kong.Context, understood bool) {
	if len(args) == 0 {
		return nil, false
	}
	parser, found := newVerbParser(args[0])
	if !found {
		return nil, false
	}
	verb, err := parser.Parse(args)
	return verb, err == nil
}

// newVerbParser returns a parser for one of the working verbs. It does not accept --help and
// --version, which need the whole grammar.
func newVerbParser(name string) (parser *kong.Kong, found bool) {
	field, value, found := verbField(reflect.ValueOf(new(working)).Elem(), name)
	if !found {
		return nil, false
	}
	parser, err := kong.New(&struct{}{},
		kong.Name("airlock"),
		kong.NoDefaultHelp(),
		kong.DynamicCommand(name, field.Tag.Get("help"), "", value.Addr().Interface(), string(field.Tag)),
	)
	if err != nil {
		panic(err) // a mistake in the struct tags
	}
	return parser, true
}

// verbField returns the field of a verb in a struct of verbs or in an embedded struct.
func verbField(verbs reflect.Value, name string) (field reflect.StructField, value reflect.Value, found bool) {
	for field, value := range verbs.Fields() {
		switch {
		case field.Anonymous:
			if field, value, found := verbField(value, name); found {
				return field, value, true
			}
		case verbName(field) == name:
			return field, value, true
		}
	}
	return field, value, false
}

// verbName returns the name of a field's verb on the command line.
func verbName(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(field.Name)
}
