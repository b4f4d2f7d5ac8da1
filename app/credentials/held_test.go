package credentials

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/redact"
)

func values(pairs ...string) map[string]secret.Value {
	m := map[string]secret.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = secret.New(pairs[i+1])
	}
	return m
}

func isHeld(redactor *redact.Redactor, text string) bool {
	left, _ := redactor.Held([]byte("x " + text + " y"))
	return !strings.Contains(string(left), text)
}

func TestEveryCredentialOfTheConfigurationIsHeld(t *testing.T) {
	redactor := redact.New()
	basic := base64.StdEncoding.EncodeToString([]byte("ann:in-basic-10"))
	Hold(redactor, &config.Config{
		Credentials: []config.Variable{{Name: "X_TOKEN", Value: secret.New("from-a-variable-1")}},
		Servers: []config.Server{{
			Env: values("CRM_TOKEN", "from-the-environment-2", "X", "by-reference-8", "SPECIAL", "declared-9",
				"DATABASE_URL", "postgres://ann:in-an-address-11@db/x", "GH",
				"ghp"+"_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"),
			References: map[string]string{"X": "env:X"},
			Headers: values("Authorization", "Bearer from-a-header-3", "Proxy-Authorization", "Basic "+basic,
				"X-Api-Key", "from-a-header-12"),
			Args: []string{"--api-key", "behind-a-flag-4", "--token=joined-to-a-flag-5", "--root", "/srv/documents",
				"-e", "DB_PASSWORD=handed-on-13",
				"--header", "Authorization: Bearer handed-on-14", "mysql://root:in-an-argument-15@db/x"},
			URL:      "https://ann:in-the-address-6@example.com/mcp?access_token=in-the-query-7&region=europe-west-1",
			Settings: config.Settings{Secrets: []string{"SPECIAL"}},
		}},
	})
	for _, text := range []string{
		"from-a-variable-1", "from-the-environment-2", "from-a-header-3", "behind-a-flag-4", "joined-to-a-flag-5",
		"in-the-address-6", "in-the-query-7",
		"by-reference-8", "declared-9", "in-basic-10", "in-an-address-11", "from-a-header-12", "handed-on-13",
		"handed-on-14", "in-an-argument-15",
		"ghp" + "_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
	} {
		if !isHeld(redactor, text) {
			t.Errorf("%s is not held", text)
		}
	}
	for _, plain := range []string{"/srv/documents", "europe-west-1", "example.com", "--header", "DB_PASSWORD"} {
		if isHeld(redactor, plain) {
			t.Errorf("%s is taken for a credential", plain)
		}
	}
}

// Ordinary environment variables of servers, none of which is a credential.
func TestOrdinaryValuesAreNotHeld(t *testing.T) {
	ordinary := []string{
		"NODE_ENV", "production", "LOG_LEVEL", "warning", "PATH", "/usr/local/bin:/usr/bin", "HOME", "/home/ann",
		"DEBUG", "mcp:server", "TZ", "Europe/Berlin",
		"AWS_REGION", "eu-central-1", "AWS_PROFILE", "production-readonly", "GITLAB_API_URL",
		"https://gitlab.example.com/api/v4", "PORT", "38080", "MAX_TOKENS", "100000",
		"TOKENIZERS_PARALLELISM", "disabled", "PYTHONPATH", "/srv/server/src", "PLUGIN_PATH", "/opt/plugins/all",
		"SSH_KEY_PATH", "/home/ann/.ssh/id_ed25519",
		"TOKEN_ENDPOINT", "https://login.example.com/oauth/token", "PASSWORD_FILE", "/run/secrets/password",
		"POSTGRES_PASSWORD", "postgres", "POSTGRES_USER", "postgres",
		"PGDATABASE", "customers", "JIRA_PROJECT_KEY", "PAYMENTS", "CACHE_KEY_PREFIX", "airlock:cache", "AUTH_TYPE",
		"oauth-client", "USE_AUTH", "enabled",
		"SECRET_NAME", "prod/database", "KEY_VAULT_NAME", "vault-of-payments", "S3_BUCKET", "invoices-2026",
		"ALLOWED_DIRECTORIES", "/srv/documents,/srv/reports",
		"OPENAI_MODEL", "gpt-4o-mini", "NODE_OPTIONS", "--max-old-space-size=4096", "LANG", "en_US.UTF-8", "NO_COLOR",
		"true", "API_KEY", "your-api-key",
		"GITHUB_TOOLSETS", "repos,issues,pull_requests", "SLACK_TEAM_ID", "T0123456789", "NOTION_VERSION", "2022-06-28",
		"PUBLIC_KEY", "/etc/ssl/public.pem",
		"READ_ONLY", "1", "TIMEOUT_MS", "30000", "USER_AGENT", "airlock/1.0", "GRAFANA_URL", "http://localhost:3000",
		"SENTRY_ORG", "acme-corporation",
		"ELASTICSEARCH_HOSTS", "http://elastic:9200", "MEMORY_FILE_PATH", "/data/memory.jsonl", "TOKEN_LIMIT", "128000",
		"AUTHOR", "ann lee", "KEYBOARD", "us-international",
		"PRIMARY_KEY", "customer_id", "ACCEPT", "application/json", "Content-Type", "application/json", "X-Client-Name",
		"airlock-test", "PASSPORT_COUNTRY", "germany",
		"COMPASS", "northwest", "MONKEY", "business", "SESSION_TIMEOUT", "3600 seconds", "SECRETS_BACKEND",
		"aws-secrets-manager", "CREDENTIALS_PROVIDER", "environment",
	}
	c := &config.Config{Servers: []config.Server{{Env: values(ordinary...)}}}
	redactor := redact.New()
	Hold(redactor, c)
	for i := 1; i < len(ordinary); i += 2 {
		if isHeld(redactor, ordinary[i]) {
			t.Errorf("%s: %s is held", ordinary[i-1], ordinary[i])
		}
	}
	if list := Describe(c); len(list) > 0 {
		t.Errorf("held: %q", list)
	}
}

func TestValuesAreDeclaredEitherWay(t *testing.T) {
	c := &config.Config{
		Credentials: []config.Variable{{Name: "SITE_TOKEN", Value: secret.New("a-public-site")}},
		Servers: []config.Server{{
			ID: "crm", Env: values("SITE_TOKEN", "a-public-site", "TENANT", "tenant-of-ann"),
			Args:     []string{"--auth-token", "a-public-flag"},
			Settings: config.Settings{Secrets: []string{"TENANT"}, Public: []string{"SITE_TOKEN", "--auth-token"}},
		}},
	}
	redactor := redact.New()
	Hold(redactor, c)
	if isHeld(redactor, "a-public-site") || isHeld(redactor, "a-public-flag") {
		t.Error("what is declared public is held")
	}
	if !isHeld(redactor, "tenant-of-ann") {
		t.Error("what is declared a secret is not held")
	}
	list := Describe(c)
	if len(list) != 1 || list[0] != `TENANT of "crm" (declared a secret)` {
		t.Errorf("got %q", list)
	}
}
