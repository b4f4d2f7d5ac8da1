package system

import (
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/redact"
)

// holdCredentials makes the redactor know every credential of the configuration: what env
// and headers hold, what variables with such names held, and what stands behind
// such a flag or in a server's address.
func holdCredentials(redactor *redact.Redactor, c *config.Config) {
	for _, secret := range c.Credentials {
		redactor.Hold(secret.Reveal())
	}
	for _, server := range c.Servers {
		for _, secrets := range []map[string]config.Secret{server.Env, server.Headers} {
			for _, secret := range secrets {
				redactor.Hold(secret.Reveal())
			}
		}
		for _, value := range append(flagCredentials(server.Args), addressCredentials(server.URL)...) {
			redactor.Hold(value)
		}
	}
}

// flagCredentials returns the values of flags that name a credential, written
// as --api-key=VALUE or as --api-key VALUE.
func flagCredentials(args []string) []string {
	var found []string
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "-") || !config.NamesCredential(name) {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		found = append(found, value)
	}
	return found
}

// addressCredentials returns the password of an address and the values of its
// query that name a credential.
func addressCredentials(address string) []string {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var found []string
	if password, ok := parsed.User.Password(); ok {
		found = append(found, password)
	}
	for name, values := range parsed.Query() {
		if config.NamesCredential(name) {
			found = append(found, values...)
		}
	}
	return found
}
