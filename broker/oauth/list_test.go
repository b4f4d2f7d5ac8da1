package oauth

import (
	"cmp"
	"testing"
	"time"
)

// The sign-ins of all principals are listed, also next to one that cannot be read (issue 27.12).
func TestSignInsAreListed(t *testing.T) {
	s := StoreIn(t, t.TempDir())
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want nothing", list, err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	began := map[string]time.Time{"ann": at.AddDate(0, -2, 0)} // bob's is of an older version, without it
	for _, principal := range []string{"ann", "bob"} {
		r := sampleRecord(principal)
		r.Changed, r.Began = at, began[principal]
		put(t, s, r)
	}
	list, err := s.List(t.Context())
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
	s.Put(t, map[string][]byte{idOf("ann", "crm", sampleURL): []byte("damaged")})
	if list, err := s.List(t.Context()); err == nil || len(list) != 1 || list[0].Principal != "bob" {
		t.Errorf("with a damaged one: got %v, %v, want bob's and an error", list, err)
	}
}

const sampleURL = "https://crm.example/mcp"

func sampleRecord(principal string) *record {
	return &record{Format: recordFormat, Principal: principal, ServerID: "crm", URL: sampleURL,
		Issuer: "https://id.example", Tokens: tokens{Access: "secret", Scopes: []string{"read"}}}
}

func put(t testing.TB, s *Store, r *record) {
	t.Helper()
	turn, err := s.turn(t.Context(), idOf(r.Principal, r.ServerID, r.URL))
	if err == nil {
		_, err = turn.save(r)
	}
	if err == nil {
		err = turn.release()
	}
	if err != nil {
		t.Fatal(err)
	}
}
