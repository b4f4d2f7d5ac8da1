package redact_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

func TestPersonalDataByChoice(t *testing.T) {
	crm := redact.Personal{
		All:     redact.Choices{"email": redact.Mask},
		Servers: map[string]redact.Choices{"crm": {"phone": redact.Keep, "email": redact.Keep, "iban": redact.Mask}},
	}
	result := []byte(`{"content":[],"structuredContent":{"phone":"+49 30 1234567","mail":"ann@corp.io",` +
		`"iban":"DE89370400440532013000"}}`)
	tests := []struct{ name, text, want string }{
		{"a telephone number of the CRM is kept", "call +49 30 1234567", "call +49 30 1234567"},
		{"also written otherwise", "call +49301234567", "call +49301234567"},
		{"also in an encoding", "Y2FsbCArNDkgMzAgMTIzNDU2NyB0b2RheQ==", "Y2FsbCArNDkgMzAgMTIzNDU2NyB0b2RheQ=="},
		{"another is not", "call +49 30 7654321", "call [redacted:phone]"},
		{"an address of the CRM is kept", "to ann@corp.io", "to ann@corp.io"},
		{"another is masked, as all are", "to bob@corp.co.uk", "to b**@****.**.uk"},
		{"a masked account keeps its length", "DE89370400440532013000", "******************3000"},
		{"a card has no choice", "4111 1111 1111 1111", "[redacted:card]"},
		{"a secret has none either", "password = \"ann@corp.io1\"", "password = \"[redacted:password]\""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := redact.New().With(crm)
			r.Learn("crm", result)
			if got, _ := r.Bytes([]byte(test.text)); string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// If another server returned a value as well, the stricter choice applies, in either order. Values
// learned by one run do not affect another.
func TestChoicesOfServersMeet(t *testing.T) {
	choices := redact.Personal{Servers: map[string]redact.Choices{"crm": {"email": redact.Keep}}}
	result := []byte(`"ann@corp.io"`)
	for _, order := range [][]string{{"crm", "mail"}, {"mail", "crm"}} {
		r := redact.New().With(choices)
		for _, server := range order {
			r.Learn(server, result)
		}
		if got, _ := r.Bytes([]byte("ann@corp.io")); string(got) != "[redacted:email]" {
			t.Errorf("%v: got %q", order, got)
		}
	}
	base := redact.New()
	base.With(choices).Learn("crm", result)
	if got, _ := base.With(choices).Bytes([]byte("ann@corp.io")); string(got) != "[redacted:email]" {
		t.Errorf("another run: got %q", got)
	}
}

// Choices apply to personal data only. A credential in the form of personal data is removed.
func TestACredentialIsNeverKept(t *testing.T) {
	r := redact.New()
	r.Hold("ann@corp.io")
	for choice := range []redact.Choice{redact.Placeholder, redact.Mask, redact.Keep} {
		got, _ := r.With(redact.Personal{All: redact.Choices{"email": redact.Choice(choice)}}).Bytes(
			[]byte("x ann@corp.io"))
		if string(got) != "x [redacted:held-credential]" && string(got) != "x [redacted:email]" {
			t.Errorf("got %q", got)
		}
	}
}
