package system

import (
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/redact"
)

// holdCredentials adds every credential of the configuration to the redactor.
func holdCredentials(redactor *redact.Redactor, c *config.Config) {
	for _, h := range held(c) {
		redactor.Hold(h.Value.Reveal())
	}
}

// held returns the values to treat as credentials: those that the configuration declares, and the
// parts of other values that have the form of a credential, whatever their name.
func held(c *config.Config) []config.Held {
	list := c.Held()
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

// personalData hands the choices about personal data to the redactor.
func personalData(c *config.Config) redact.Personal {
	p := redact.Personal{All: choices(c.Personal), Servers: map[string]redact.Choices{}}
	for _, server := range c.Servers {
		if len(server.Settings.Personal) > 0 {
			p.Servers[server.ID] = choices(server.Settings.Personal)
		}
	}
	return p
}

func choices(personal config.Personal) redact.Choices {
	list := redact.Choices{}
	for kind, choice := range personal {
		switch choice {
		case config.PersonalKeep:
			list[kind] = redact.Keep
		case config.PersonalMask:
			list[kind] = redact.Mask
		default:
			list[kind] = redact.Placeholder
		}
	}
	return list
}

// HeldCredentials describes what is held of a configuration whose references were
// looked up: names and reasons, never values.
func HeldCredentials(c *config.Config) []string {
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
