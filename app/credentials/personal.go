package credentials

import (
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/redact"
)

// PersonalKept returns the choices of a redactor that keeps all personal data.
func PersonalKept() redact.Personal {
	return redact.Personal{All: redact.Choices{
		"email": redact.Keep, "phone": redact.Keep, "card": redact.Keep, "iban": redact.Keep, "us-ssn": redact.Keep,
		"ip-address": redact.Keep,
	}}
}

// Personal returns the choices of a configuration about personal data.
func Personal(c *config.Config) redact.Personal {
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
