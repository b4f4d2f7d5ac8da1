package config

import (
	"encoding/json"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that may be a credential. However it is printed, logged or
// encoded, it reads "[redacted]".
type Secret struct{ value string }

// NewSecret returns a secret that holds value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the text itself, for the one place that uses it.
func (s Secret) Reveal() string { return s.value }

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return redacted }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON writes "[redacted]".
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
