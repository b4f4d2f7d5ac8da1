// Package secret has a type for texts that may be credentials. Formatting and encoding never show them.
package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Value is a text that may be a credential. However it is printed, logged, formatted or encoded, it
// reads "[redacted]". It is not comparable by ==, so that no map or set of values
// comes about by accident.
type Value struct {
	text string
	_    [0]func()
}

// New returns a Value that holds text.
func New(text string) Value { return Value{text: text} }

// Reveal returns the text itself, for the one place that uses it.
func (v Value) Reveal() string { return v.text }

// String returns "[redacted]".
func (v Value) String() string { return redacted }

// GoString returns "[redacted]".
func (v Value) GoString() string { return redacted }

// Format writes "[redacted]" for every verb and flag.
func (v Value) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// LogValue returns "[redacted]".
func (v Value) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON writes "[redacted]".
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText writes "[redacted]", for every other encoding.
func (v Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }
