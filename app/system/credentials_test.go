package system

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/redact"
)

func TestEveryCredentialOfTheConfigurationIsHeld(t *testing.T) {
	redactor := redact.New()
	holdCredentials(redactor, &config.Config{
		Credentials: []config.Secret{config.NewSecret("from-a-variable-1")},
		Servers: []config.Server{{
			Env:     map[string]config.Secret{"X": config.NewSecret("from-the-environment-2")},
			Headers: map[string]config.Secret{"Authorization": config.NewSecret("from-a-header-3")},
			Args:    []string{"--api-key", "behind-a-flag-4", "--token=joined-to-a-flag-5", "--root", "/srv/documents"},
			URL:     "https://ann:in-the-address-6@example.com/mcp?access_token=in-the-query-7&region=europe-west-1",
		}},
	})
	for _, secret := range []string{
		"from-a-variable-1", "from-the-environment-2", "from-a-header-3", "behind-a-flag-4",
		"joined-to-a-flag-5", "in-the-address-6", "in-the-query-7",
	} {
		if left, _ := redactor.Held([]byte("x " + secret + " y")); strings.Contains(string(left), secret) {
			t.Errorf("%s is not held", secret)
		}
	}
	for _, plain := range []string{"/srv/documents", "europe-west-1", "example.com"} {
		if left, _ := redactor.Held([]byte("x " + plain + " y")); !strings.Contains(string(left), plain) {
			t.Errorf("%s is taken for a credential", plain)
		}
	}
}
