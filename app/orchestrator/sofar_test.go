package orchestrator

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// Partial output never shows a part of a secret that the complete output hides, at any time.
func TestOutputSoFarHidesWhatTheWholeHides(t *testing.T) {
	key := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 4)
	const armour = "-----BEGIN PRIVATE KEY-----\n-----BEGIN RSA PRIVATE KEY-----\n" // no secret by itself
	held := "held-s3cr3t-value-of-crm"
	redactor := redact.New()
	redactor.Hold(held)
	for name, secret := range map[string]string{
		"a token":           "ghp_" + strings.Repeat("A1b2C3d4E5", 4)[:36],
		"a key":             "-----BEGIN PRIVATE KEY-----\n" + key + "-----END PRIVATE KEY-----",
		"an RSA key":        "-----BEGIN RSA PRIVATE KEY-----\n" + key + "-----END RSA PRIVATE KEY-----",
		"a credential held": held,
		"a mail address":    "ann.smith@corp.io",
	} {
		for around, text := range map[string]string{
			"a line": "before\n" + secret + "\nafter\n", "in a line": "before " + secret + " after\n",
			"at once": secret,
		} {
			whole, _ := redactor.Bytes([]byte(text))
			for end := range len(text) + 1 {
				shown, missing := soFar(redactor, runner.Output{Head: []byte(text[:end]), Total: int64(end)}, 64<<10)
				if missing != 0 {
					t.Fatalf("%s, %s: got %d bytes missing of %d", name, around, missing, end)
				}
				for at := 0; at+12 <= len(secret); at++ {
					if piece := secret[at : at+12]; !strings.Contains(armour, piece) &&
						strings.Contains(shown, piece) && !strings.Contains(string(whole), piece) {
						t.Fatalf("%s, %s: after %d bytes %q is shown in %q", name, around, end, piece, shown)
					}
				}
			}
		}
	}
}
