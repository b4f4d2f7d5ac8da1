package daemon

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/airlock-mcp/airlock/app/auth"
)

// asked sends one request over a new HTTP/2 connection and returns the status of its answer, or 0 if
// the stream or the connection was ended instead.
func (s *served) asked(fields ...[2]string) int {
	s.t.Helper()
	conn := s.dialSecured("h2")
	defer conn.Close()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // never fails for a buffer
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		s.t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		s.t.Fatal(err)
	}
	const most = 16 << 10 // the size of a frame
	text, first := block.Bytes(), true
	for first || len(text) > 0 {
		part := text[:min(most, len(text))]
		text = text[len(part):]
		var err error
		if first {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: part, EndStream: true,
				EndHeaders: len(text) == 0})
		} else {
			err = framer.WriteContinuation(1, len(text) == 0, part)
		}
		if first = false; err != nil {
			break // the server has closed the connection
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.t.Fatalf("%q: no answer", fields)
		}
		if err != nil {
			return 0
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status := 0
			for _, digit := range frame.PseudoValue("status") {
				status = status*10 + int(digit-'0')
			}
			return status
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return 0
		}
	}
}

// fieldsOf returns the fields of a GET of a path for an authority.
func fieldsOf(authority, path string, more ...[2]string) [][2]string {
	return append([][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", authority}, {":path", path}},
		more...)
}

// Issue 23: over HTTP/2 and TLS, a request for another host is refused on a connection that was opened for
// this one (coalescing), a Host header does not replace the authority, and giant or malformed headers
// end the stream.
func TestHTTP2AuthorityAndHeaders(t *testing.T) {
	s := serveTLS(t)
	bearer := [2]string{"authorization", "Bearer " + s.token("ann", auth.ScopeAgents)}
	own := strings.TrimPrefix(s.url, "https://")
	if got := s.asked(fieldsOf(own, "/v1/agents", bearer)...); got != http.StatusOK {
		t.Fatalf("a usual request: got %d", got)
	}
	for name, fields := range map[string][][2]string{
		"another authority":       fieldsOf("evil.example", "/v1/agents", bearer),
		"another authority, host": fieldsOf("evil.example", "/v1/agents", bearer, [2]string{"host", own}),
		"the console elsewhere":   fieldsOf("evil.example", "/sign-in"),
		"the host elsewhere":      fieldsOf(own, "/v1/agents", bearer, [2]string{"host", "evil.example"}),
		"user information":        fieldsOf("evil.example@"+own, "/v1/agents", bearer),
		"a header of 1 MiB":       fieldsOf(own, "/v1/agents", bearer, [2]string{"x", strings.Repeat("~", 1<<20)}),
		"many headers":            fieldsOf(own, "/v1/agents", append(repeated("x", 10_000), bearer)...),
		"a line in a value":       fieldsOf(own, "/v1/agents", bearer, [2]string{"x", "a\r\nx-forwarded-for: 1"}),
		"a connection header":     fieldsOf(own, "/v1/agents", bearer, [2]string{"connection", "close"}),
		"an encoding":             fieldsOf(own, "/v1/agents", bearer, [2]string{"transfer-encoding", "chunked"}),
		"an upper-case name":      fieldsOf(own, "/v1/agents", bearer, [2]string{"X-Y", "a"}),
		"two paths":               fieldsOf(own, "/v1/agents", [2]string{":path", "/"}, bearer),
		"a late pseudo-header":    fieldsOf(own, "/v1/agents", bearer, [2]string{":scheme", "https"}),
	} {
		if got := s.asked(fields...); got == http.StatusOK || got >= http.StatusInternalServerError {
			t.Errorf("%s: got %d, want a refusal", name, got)
		}
	}
	if got := s.asked(fieldsOf(own, "/v1/agents", bearer)...); got != http.StatusOK {
		t.Errorf("a usual request afterwards: got %d", got)
	}
}

func repeated(name string, n int) [][2]string {
	list := make([][2]string, n)
	for i := range list {
		list[i] = [2]string{name, "a value"}
	}
	return list
}

// Streams that are opened and reset at once leave nothing behind, and others are answered.
func TestAFloodOfResets(t *testing.T) {
	s := serveTLS(t)
	token := s.token("ann", auth.ScopeRun)
	conn := s.dialSecured("h2")
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	const streams = 20_000
	for i := range streams {
		id := uint32(2*i + 1)
		// The block is not indexed again: each stream has a complete one.
		err := errors.Join(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: header(token),
			EndHeaders: true}), framer.WriteRSTStream(id, http2.ErrCodeCancel))
		if err != nil {
			t.Fatal(err)
		}
		if out.Len() > 64<<10 {
			if _, err := conn.Write(out.Bytes()); err != nil {
				break // the server has ended the connection, which is its right
			}
			out.Reset()
		}
	}
	if _, protocol, err := s.shown(&tls.Config{}); err != nil || protocol != "HTTP/2.0" {
		t.Errorf("another is answered over %q, %v meanwhile", protocol, err)
	}
	conn.Close()
	s.untilUnused("user ann")
}
