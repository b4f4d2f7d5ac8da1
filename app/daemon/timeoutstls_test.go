package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// serveTLS is serve with a certificate for 127.0.0.1.
func serveTLS(t *testing.T, change ...func(*Daemon)) *served {
	t.Helper()
	dir := t.TempDir()
	file, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate, private := pair(t, 1)
	for path, text := range map[string][]byte{file: certificate, key: private} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, fmt.Sprintf("serve: {certificate: %q, key: %q}\n", file, key), change...)
}

// frames returns the preface of an HTTP/2 connection and the frames that write adds.
func frames(t *testing.T, write func(*http2.Framer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, nil)
	if err := errors.Join(framer.WriteSettings(), write(framer)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// header returns the header of a request to /mcp.
func header(token string) []byte {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "127.0.0.1"},
		{":path", "/mcp"}, {"authorization", "Bearer " + token}, {"content-type", "application/json"},
		{"accept", "application/json, text/event-stream"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // never fails for a buffer
	}
	return out.Bytes()
}

// A client over TLS that does not complete its handshake, a header, a frame or a body, or sends it byte
// by byte, is disconnected in both versions of HTTP. An HTTP/2 connection was kept for minutes, or
// for ever (issue 23). Other clients are answered meanwhile.
func TestWhoSendsSlowlyOverTLSIsDropped(t *testing.T) {
	s := serveTLS(t, func(d *Daemon) {
		d.limits.headerTime, d.limits.bodyTime, d.limits.silentTime = 2*time.Second, 2*time.Second, 2*time.Second
	})
	token := s.token("ann", auth.ScopeRun)
	begun := func(end bool) []byte {
		return frames(t, func(f *http2.Framer) error {
			return f.WriteHeaders(
				http2.HeadersFrameParam{StreamID: 1, BlockFragment: header(token), EndHeaders: end})
		})
	}
	var data bytes.Buffer
	if err := http2.NewFramer(&data, nil).WriteData(1, false, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var continuation bytes.Buffer
	if err := http2.NewFramer(&continuation, nil).WriteContinuation(1, false, header("x")[:1]); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		protocol string // empty: without a handshake
		sent     []byte
		drip     []byte // sent again and again
	}{
		"no handshake":        {},
		"half a handshake":    {sent: []byte{22, 3, 1, 2, 0, 1}},
		"a dripped handshake": {sent: []byte{22, 3, 1, 2, 0, 1}, drip: []byte{0}},
		"1.1: nothing":        {protocol: "http/1.1"},
		"1.1: half a header": {protocol: "http/1.1",
			sent: []byte("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")},
		"1.1: a dripped header": {protocol: "http/1.1", sent: []byte("GET /healthz HTTP/1.1\r\nX: "),
			drip: []byte("x")},
		"1.1: no body":      {protocol: "http/1.1", sent: []byte(post("/mcp", token, 10))},
		"2: nothing":        {protocol: "h2"},
		"2: half a preface": {protocol: "h2", sent: []byte(http2.ClientPreface[:10])},
		"2: no request":     {protocol: "h2", sent: frames(t, func(*http2.Framer) error { return nil })},
		"2: half a frame":   {protocol: "h2", sent: append(begun(true), data.Bytes()[:5]...)},
		"2: a dripped frame": {protocol: "h2", sent: append(begun(true), 0, 0x3f, 0xff, 0, 0, 0, 0, 0, 1),
			drip: []byte("x")},
		"2: no end of the header": {protocol: "h2", sent: begun(false)},
		"2: dripped continuation": {protocol: "h2", sent: begun(false), drip: continuation.Bytes()},
		"2: no body":              {protocol: "h2", sent: begun(true)},
		"2: half a body":          {protocol: "h2", sent: append(begun(true), data.Bytes()...)},
	}
	conns := map[string]net.Conn{}
	dripping, stop := context.WithCancel(t.Context())
	defer stop()
	for name, test := range tests {
		conn := s.dialSecured(test.protocol)
		conns[name] = conn
		if _, err := conn.Write(test.sent); err != nil {
			t.Fatal(err)
		}
		if len(test.drip) > 0 {
			go func() {
				for dripping.Err() == nil {
					if _, err := conn.Write(test.drip); err != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
		}
	}
	if _, protocol, err := s.shown(&tls.Config{}); err != nil || protocol != "HTTP/2.0" {
		t.Errorf("another is answered over %q, %v meanwhile", protocol, err)
	}
	for name, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is still open", name)
		}
	}
}

// dialSecured opens a connection that speaks a protocol, or one without TLS if it is empty.
func (s *served) dialSecured(protocol string) (conn net.Conn) {
	s.t.Helper()
	var err error
	address := strings.TrimPrefix(s.url, "https://")
	if protocol == "" {
		conn, err = net.Dial("tcp", address)
	} else {
		conn, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// A client of HTTP/2 that answers pings but does not complete its body gets an answer, and its
// connection stays usable for its other requests.
func TestABodyThatIsNotCompletedEndsItsStream(t *testing.T) {
	s := serveTLS(t, func(d *Daemon) { d.limits.bodyTime = 2 * time.Second })
	token := s.token("ann", auth.ScopeRun)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/mcp", "/v1/agents", "/kernel/mcp"} {
		body, unfinished := io.Pipe()
		defer unfinished.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		go func() { _, _ = unfinished.Write([]byte("{")) }()
		res, err := client.Do(r)
		if err != nil {
			t.Logf("%s: %v", path, err)
			continue
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode < 400 {
			t.Errorf("%s: got %s over %s, want a refusal over HTTP/2", path, res.Status, res.Proto)
		}
	}
	testenv.Await(t, "no request is being answered", func() bool { return s.daemon.bounded.answering.n.Load() == 0 })
	res, err := client.Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
