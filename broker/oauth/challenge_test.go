package oauth

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChallenges(t *testing.T) {
	tests := []struct {
		name    string
		headers []string
		want    Challenge
	}{
		{"none", nil, Challenge{}},
		{"a bare scheme", []string{"Bearer"}, Challenge{Scheme: "bearer"}},
		{"all that matters",
			[]string{`Bearer error="insufficient_scope", scope="a  b", resource_metadata="https://x/y?a=b,c"`},
			Challenge{"bearer", "https://x/y?a=b,c", []string{"a", "b"}, "insufficient_scope"}},
		{"without quotes and commas", []string{`bearer realm=x scope=a`},
			Challenge{Scheme: "bearer", Scopes: []string{"a"}}},
		{"behind another scheme", []string{`Basic realm="a, Bearer scope=\"x\"", DPoP error=use_dpop_nonce`},
			Challenge{Scheme: "dpop", Error: "use_dpop_nonce"}},
		{"behind a token68", []string{`Negotiate abc==`, `Bearer scope="a"`},
			Challenge{Scheme: "bearer", Scopes: []string{"a"}}},
		{"in two headers", []string{`Basic`, `Bearer scope="a"`}, Challenge{Scheme: "bearer", Scopes: []string{"a"}}},
		{"the first of two values", []string{`Bearer scope="a", scope="b"`},
			Challenge{Scheme: "bearer", Scopes: []string{"a"}}},
		{"escapes", []string{`Bearer error="a\"b"`}, Challenge{Scheme: "bearer", Error: `a"b`}},
		{"an open quote", []string{`Bearer scope="a`}, Challenge{Scheme: "bearer"}},
		{"rubbish", []string{`=,=,"`}, Challenge{}},
		{"too long", []string{"Bearer scope=" + strings.Repeat("a", maxChallenge)}, Challenge{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := challengeOf(http.Header{"Www-Authenticate": test.headers})
			if len(got.Scopes) == 0 {
				got.Scopes = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer error="insufficient_scope", scope="a b"`)
	f.Add(`Basic abc==, DPoP algs="ES256"`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseChallenges(text) {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) {
				t.Errorf("got the scheme %q", c.scheme)
			}
		}
	})
}
