package credentials

import (
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/redact"
)

// Hold has the redactor remove every credential of the configuration.
func Hold(redactor *redact.Redactor, c *config.Config) {
	for _, h := range held(c) {
		redactor.Hold(h.Value.Reveal())
	}
}

// held returns the values to treat as credentials: those that the configuration declares, and the
// parts of other values that have the form of a credential, whatever their name.
func held(c *config.Config) []config.Credential {
	list := c.AllCredentials()
	scanner := redact.New()
	for _, server := range c.Servers {
		for _, s := range server.Undeclared() {
			for _, part := range scanner.Secrets([]byte(s.Value.Reveal())) {
				s.Why, s.Value = "it has the form of a "+part.Kind, part.Value
				list = append(list, s)
			}
		}
	}
	return list
}

// Describe lists the credentials of a resolved configuration by their names, with the reasons why they are
// credentials. It never returns values.
func Describe(c *config.Config) []string {
	var list []string
	for _, h := range held(c) {
		line := h.String()
		if len(h.Value.Reveal()) < redact.MinHeld {
			line = fmt.Sprintf("%s, but shorter than %d bytes, which cannot be looked for",
				strings.TrimSuffix(line, ")"), redact.MinHeld) + ")"
		}
		list = append(list, line)
	}
	return list
}
