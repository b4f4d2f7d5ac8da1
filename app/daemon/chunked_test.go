package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The connection of a chunked body is closed after the answer, so that bytes after the body are
// not read as a request (issue 23). This is also true if a handler sets headers, as the SDK
// does on streams ("Connection: keep-alive").
func TestAConnectionEndsAfterAChunkedBody(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "keep-alive")
			w.WriteHeader(http.StatusOK)
			io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
		},
		"a write": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "keep-alive")
			io.WriteString(w, "x")
		},
		"a flush": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "keep-alive")
			w.(http.Flusher).Flush()
		},
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "keep-alive") },
		"a status": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("Connection")
			w.WriteHeader(http.StatusAccepted)
		},
		"a first status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Connection", "keep-alive")
			w.WriteHeader(http.StatusOK)
		},
		"through controls": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "x")
			http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(withTimeouts(limits{bodyTime: time.Minute, readTime: time.Minute}, handler))
			defer server.Close()
			s := &served{t: t, url: server.URL}
			const smuggled = "GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
			got := s.raw("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nTransfer-Encoding: " +
				"chunked\r\n\r\n0\r\n\r\n" + smuggled)
			if final := got[len(got)-1]; final == 0 || len(got) > 2 || len(got) == 2 &&
				got[0] != http.StatusEarlyHints {
				t.Errorf("got the answers %v, want one", got)
			}
		})
	}
}

// The same with a successful call of the real face, in the revisions with and without sessions.
func TestAConnectionEndsAfterAChunkedCall(t *testing.T) {
	s := serve(t, "")
	token := s.token("ann", "run")
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list",` +
			`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`,
	} {
		modern := ""
		if strings.Contains(body, "2026-07-28") {
			modern = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
		}
		request := "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\n" +
			"Accept: application/json, text/event-stream\r\n" + modern + "Transfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		conn := s.send(request + "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(text), `"result"`) {
			t.Errorf("got HTTP %d, %s, %v, want a result", res.StatusCode, text, err)
		}
		if more, err := http.ReadResponse(in, nil); err == nil {
			t.Errorf("what follows the body was answered with HTTP %d", more.StatusCode)
		}
	}
}
