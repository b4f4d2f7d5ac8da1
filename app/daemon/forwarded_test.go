package daemon

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Only text that a trusted proxy has written determines the address of a client. Text of the
// client does not, in any header and form.
func TestClientsBehindProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	const proxy = "10.0.0.1:4000"
	for name, test := range map[string]struct {
		peer                string
		older, standard     []string // X-Forwarded-For, Forwarded
		want                string   // "": that of the connection
		proxiesAreUntrusted bool
	}{
		"no header":  {peer: proxy},
		"one client": {peer: proxy, older: []string{"192.0.2.1"}, want: "192.0.2.1"},
		"a client's own word before it": {peer: proxy, older: []string{"198.51.100.9, 192.0.2.1"},
			want: "192.0.2.1"},
		"a client that says it is a proxy": {peer: proxy, older: []string{"10.0.0.9, 192.0.2.1"},
			want: "192.0.2.1"},
		"two proxies": {peer: proxy, older: []string{"198.51.100.9, 192.0.2.1, 10.9.9.9"},
			want: "192.0.2.1"},
		"two lines": {peer: proxy,
			older: []string{"198.51.100.9", "192.0.2.1,\t10.9.9.9"}, want: "192.0.2.1"},
		"proxies alone": {peer: proxy, older: []string{"10.0.0.3, 10.0.0.2"},
			want: "10.0.0.3"},
		"a port": {peer: proxy, older: []string{"192.0.2.1:80"}, want: "192.0.2.1"},
		"IPv6": {peer: "[2001:db8:1::1]:4000", older: []string{"2001:db8:2::7"},
			want: "2001:db8:2::7"},
		"IPv6 in brackets": {peer: proxy, older: []string{"[2001:db8:2::7]"},
			want: "2001:db8:2::7"},
		"IPv6 with a port": {peer: proxy, older: []string{"[2001:db8:2::7]:80"},
			want: "2001:db8:2::7"},
		"IPv4 as IPv6": {peer: "[::ffff:10.0.0.1]:4000", older: []string{"::ffff:192.0.2.1"},
			want: "192.0.2.1"},
		"no address":                {peer: proxy, older: []string{"192.0.2.1, unknown"}},
		"no address before a proxy": {peer: proxy, older: []string{"192.0.2.1, _hidden, 10.0.0.2"}},
		"nothing":                   {peer: proxy, older: []string{""}},
		"an open bracket":           {peer: proxy, older: []string{"[192.0.2.1"}},
		"an untrusted peer": {peer: "192.0.2.7:4000", older: []string{"10.0.0.5"},
			standard: []string{"for=10.0.0.5"}},
		"no proxies are trusted": {peer: proxy, older: []string{"192.0.2.1"},
			standard: []string{"for=192.0.2.1"}, proxiesAreUntrusted: true},
		"a peer that is no address": {peer: "@", older: []string{"192.0.2.1"}},
		"the standard's header": {peer: proxy,
			standard: []string{`for=198.51.100.9, For="192.0.2.1:80";proto=https;by=10.0.0.1`}, want: "192.0.2.1"},
		"the standard's IPv6": {peer: proxy, standard: []string{`for="[2001:db8:2::7]:4711"`},
			want: "2001:db8:2::7"},
		"the standard's two lines": {peer: proxy,
			standard: []string{"for=198.51.100.9", "host=a;for=192.0.2.1", "for=10.0.0.2"}, want: "192.0.2.1"},
		"a quoted comma": {peer: proxy,
			standard: []string{`host="a, for=198.51.100.9";for=192.0.2.1`}, want: "192.0.2.1"},
		"an escaped quote": {peer: proxy,
			standard: []string{`host="a\", for=198.51.100.9";for=192.0.2.1`}, want: "192.0.2.1"},
		"a quote that a client left open": {peer: proxy,
			standard: []string{`for=198.51.100.9;host="`, `for=192.0.2.1`}},
		"a quote that the proxy's closes": {peer: proxy,
			standard: []string{`for=198.51.100.9;host="`, `for="192.0.2.1"`}},
		"a quote that escapes the proxy's": {peer: proxy,
			standard: []string{`for=198.51.100.9;host="\`, `";for="192.0.2.1"`}},
		"an element without a client": {peer: proxy, standard: []string{"for=198.51.100.9, proto=https"}},
		"two clients in one element":  {peer: proxy, standard: []string{"for=198.51.100.9;for=192.0.2.1"}},
		"an empty element":            {peer: proxy, standard: []string{"for=192.0.2.1,"}},
		"both headers, alike": {peer: proxy, older: []string{"192.0.2.1"},
			standard: []string{"for=198.51.100.9, for=192.0.2.1"}, want: "192.0.2.1"},
		"one header of the proxy, one of its": {peer: proxy, older: []string{"198.51.100.9"},
			standard: []string{"for=192.0.2.1"}},
		"one header of the proxy, one unreadable": {peer: proxy, older: []string{"192.0.2.1"},
			standard: []string{"for="}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = test.peer
		r.Header["X-Forwarded-For"], r.Header["Forwarded"] = test.older, test.standard
		want := test.want
		if want == "" {
			want = test.peer
		}
		trusted := proxies
		if test.proxiesAreUntrusted {
			trusted = nil
		}
		c := &clients{trusted, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := r.RemoteAddr; caller.Network(got) != caller.Network(want) {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		})}
		c.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// For any text of the client, the element that a proxy appends determines the address of the
// client, or the header is ignored.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "for=1.2.3.4", `for="[::1]:1";host="a\"b"`, `host="`, `host="\`, "for=1.2.3.4,",
		", ,", "=;=,\x00"} {
		f.Add(seed)
	}
	c := &clients{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f.Fuzz(func(t *testing.T, client string) {
		for header, added := range map[string]string{"X-Forwarded-For": "192.0.2.1",
			"Forwarded": `for="192.0.2.1:80";proto=https`} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = "10.0.0.1:80"
			r.Header[header] = []string{client, added}
			if from, ok := c.of(r); ok && from.String() != "192.0.2.1" {
				t.Errorf("%s: %q: got %s", header, client, from)
			}
		}
	})
}

// Failed sign-ins behind a trusted proxy count for the client, regardless of its own headers.
// If the proxy is not trusted, they count for the proxy.
func TestFailedSignInsBehindAProxy(t *testing.T) {
	for _, test := range []struct {
		keys  string
		other int // the status for another client, when one has failed too often
	}{
		{"serve: {trustedProxies: [127.0.0.0/8]}\n", http.StatusForbidden},
		{"", http.StatusTooManyRequests},
	} {
		s := serve(t, test.keys)
		fail := func(forwarded string) int {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/sign-in",
				strings.NewReader(url.Values{"token": {"airlock_0"}}.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Forwarded-For", forwarded)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		// One more failure is allowed every six seconds; a slow machine may need that long.
		for n := 0; fail(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}).String()+
			", 192.0.2.1") != http.StatusTooManyRequests; n++ {
			if t.Context().Err() != nil || n > 1000 {
				t.Fatalf("%q: no sign-in was refused", test.keys)
			}
		}
		if got := fail("192.0.2.2"); got != test.other {
			t.Errorf("%q: another client: got %d, want %d", test.keys, got, test.other)
		}
	}
}
