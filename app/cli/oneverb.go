package cli

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// parseVerb parses a command line with the model of the verb that its first word names.
// The model of all verbs takes longer to build than most verbs take to run. It has
// understood nothing, and nothing has happened, where the whole grammar has to read the
// command line: for help, for a verb that describes the others, and for what is wrong,
// which is said in the words of the whole.
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

// newVerbParser returns a parser for one of the working verbs. It knows neither --help
// nor --version: the whole grammar does.
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
		panic(err) // the grammar is ours
	}
	return parser, true
}

// verbField returns the field of a verb in a struct of verbs, or in one that is embedded there.
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

// verbName returns what a field's verb is called on the command line.
func verbName(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(field.Name)
}
