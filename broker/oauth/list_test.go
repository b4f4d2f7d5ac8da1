package oauth

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The sign-ins of all principals are listed, also next to a file that cannot be read (issue 27.12).
func TestSignInsAreListed(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(filepath.Join(dir, "sign-ins"), filepath.Join(dir, "keys"))
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want nothing", list, err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	began := map[string]time.Time{"ann": at.AddDate(0, -2, 0)} // bob's is of an older version, without it
	for _, principal := range []string{"ann", "bob"} {
		r := &record{Format: recordFormat, Principal: principal, ServerID: "crm", URL: "https://crm.example/mcp",
			Changed: at, Began: began[principal],
			Issuer: "https://id.example", Tokens: tokens{Access: "secret", Scopes: []string{"read"}}}
		if err := s.save(s.path(principal, "crm", r.URL), r); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v, want two", list, err)
	}
	for _, one := range list {
		if one.ServerID != "crm" || one.Issuer != "https://id.example" || len(one.Scopes) != 1 ||
			!one.Renewed.Equal(at) ||
			!one.Began.Equal(cmp.Or(began[one.Principal], at)) {
			t.Errorf("got %+v", one)
		}
	}
	if err := os.WriteFile(s.path("ann", "crm", "https://crm.example/mcp"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); err == nil || len(list) != 1 || list[0].Principal != "bob" {
		t.Errorf("with a damaged file: got %v, %v, want bob's and an error", list, err)
	}
}
