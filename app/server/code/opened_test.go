package code

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// If a caller opens sessions and ends none, its oldest sessions are evicted. Sessions with an open
// stream and sessions of other callers are kept.
func TestSessionsThatAreNeverEnded(t *testing.T) {
	const version = "2025-11-25"
	s, _ := newServer(t)
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(web.Close)
	ann, bob := dial(t, web.URL, "t-ann", version, nil), dial(t, web.URL, "t-agent", version, nil)
	left := make([]string, 1_001)
	for n := range left {
		left[n] = begin(t, web.URL, "t-ann", version)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, test := range []struct {
		name, session string
		want          int
	}{{"the oldest", left[0], http.StatusNotFound}, {"the newest", left[len(left)-1], http.StatusOK}} {
		if got := post(t, web.URL, "t-ann", test.session, version, ping); got != test.want {
			t.Errorf("%s: got status %d, want %d", test.name, got, test.want)
		}
	}
	for name, session := range map[string]*mcp.ClientSession{"one that listens": ann, "another caller": bob} {
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller that sends large messages slowly does not block those of other callers.
func TestLargeMessagesOfOneCaller(t *testing.T) {
	const version = "2026-07-28"
	s, _ := newServer(t)
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(web.Close)
	var slow sync.WaitGroup
	t.Cleanup(slow.Wait)
	sendSlowly := func() {
		body, end := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, body) // of unknown length
		if err != nil {
			t.Fatal(err)
		}
		slow.Go(func() {
			res, err := testenv.Bearer("t-ann").Do(r)
			if err == nil {
				res.Body.Close()
			}
		})
		if _, err := end.Write([]byte("{")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end.CloseWithError(io.ErrUnexpectedEOF) })
	}
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 100<<10) + `"}}}`
	for tries := 0; post(t, web.URL, "t-ann", "", version, large) != http.StatusTooManyRequests; tries++ {
		if t.Context().Err() != nil {
			t.Fatal("the caller is never refused")
		}
		if tries%5 == 0 { // four fit; one that arrives beside this message may be refused in its place
			sendSlowly()
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := post(t, web.URL, "t-agent", "", version, large); got == http.StatusTooManyRequests ||
		got == http.StatusServiceUnavailable {
		t.Errorf("another caller: got status %d", got)
	}
	if got := post(t, web.URL, "t-ann", "", version,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`); got == http.StatusTooManyRequests {
		t.Errorf("a small message: got status %d", got)
	}
}

// begin opens a session and returns its ID.
func begin(t *testing.T, url, token, version string) string {
	t.Helper()
	message := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := testenv.Bearer(token).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body) // the header is all that counts
	if res.StatusCode != http.StatusOK {
		t.Fatalf("beginning a session: status %d", res.StatusCode)
	}
	return res.Header.Get("Mcp-Session-Id")
}
