package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// raw sends bytes unchanged and returns the status of each answer until the connection is
// closed.
func (s *served) raw(request string) []int {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	var statuses []int
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		io.Copy(io.Discard, res.Body) // the status is all that counts
		statuses = append(statuses, res.StatusCode)
	}
}

// Ambiguous requests, which a proxy could parse differently, are refused, and a request that
// is smuggled in a body is not answered.
func TestSmuggledRequestsAreRefused(t *testing.T) {
	s := serve(t, "")
	host := "Host: 127.0.0.1\r\n"
	own := "Authorization: Bearer " + s.token("ann", auth.ScopeAgents) + "\r\n"
	for name, test := range map[string]struct {
		request string
		want    string
	}{
		"two lengths": {"POST /mcp HTTP/1.1\r\n" + host +
			"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcdGET /healthz HTTP/1.1\r\n" + host + "\r\n", "[400]"},
		"a length and no number": {"POST /mcp HTTP/1.1\r\n" + host + "Content-Length: +4\r\n\r\nabcd", "[400]"},
		"an unknown encoding": {"POST /mcp HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
			"[501]"},
		"two encodings": {"POST /mcp HTTP/1.1\r\n" + host +
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "[501]"},
		"a space before the colon": {"POST /mcp HTTP/1.1\r\n" + host + "Content-Length : 4\r\n\r\nabcd", "[400]"},
		"two hosts":                {"GET /healthz HTTP/1.1\r\n" + host + "Host: evil.example\r\n\r\n", "[400]"},
		"no host":                  {"GET /healthz HTTP/1.1\r\n\r\n", "[400]"},
		"a huge header": {"GET /healthz HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 64<<10) +
			"\r\n\r\n", "[431]"},
		"another name": {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", "[403]"},
		"a foreign page": {"POST /mcp HTTP/1.1\r\n" + host +
			"Origin: https://evil.example\r\nContent-Length: 2\r\n\r\n{}", "[403]"},
		"a foreign page at /v1": {"GET /v1/agents HTTP/1.1\r\n" + host + "Origin: https://evil.example\r\n\r\n",
			"[403]"},
		// A request with two lengths ends its connection: bytes after it are not a request.
		"a length and an encoding": {"POST /mcp HTTP/1.1\r\n" + host +
			"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n" + host + "\r\n",
			"[401]"},
		"an encoding": {"POST /mcp HTTP/1.1\r\n" + host +
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n" + host + "\r\n", "[401]"},
		"a broken chunk": {"POST /v1/agents HTTP/1.1\r\n" + host + own +
			"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "[400]"},
		"a chunk without its CR": {"POST /v1/agents HTTP/1.1\r\n" + host + own +
			"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", "[400]"},
		"long chunk extensions": {"POST /v1/agents HTTP/1.1\r\n" + host + own +
			"Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 64<<10) + "\r\n{}\r\n0\r\n\r\n", "[400]"},
		"a folded header": {"POST /mcp HTTP/1.1\r\n" + host +
			"X: a\r\n Content-Length: 40\r\nContent-Length: 2\r\n\r\n{}", "[401]"},
		"a header without a colon": {"GET /healthz HTTP/1.1\r\n" + host + "Content-Length\r\n\r\n", "[400]"},
		"a null in a header":       {"GET /healthz HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n", "[400]"},
		"a CR in a header": {"GET /healthz HTTP/1.1\r\n" + host + "X: a\rTransfer-Encoding: chunked\r\n\r\n",
			"[400]"},
		"a long address": {"GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\n" + host + "\r\n", "[431]"},
		"many headers": {"GET /healthz HTTP/1.1\r\n" + host + strings.Repeat("X: y\r\n", 20_000) + "\r\n",
			"[431]"},
		"HTTP/2 without TLS": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "[400]"},
		"an upgrade to HTTP/2": {"GET /mcp HTTP/1.1\r\n" + host +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
			"[401]"},
		"a tunnel": {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "[404]"},
		"a trace":  {"TRACE /mcp HTTP/1.1\r\n" + host + "\r\n", "[401]"},
		"another's address": {"POST http://evil.example/mcp HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}",
			"[403]"},
		"a name with a dot": {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\nContent-Length: 2\r\n\r\n{}",
			"[403]"},
		"a name with a user": {"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\nContent-Length: 2\r\n\r\n{}",
			"[400]"},
		"a page of no origin": {"POST /mcp HTTP/1.1\r\n" + host + "Origin: null\r\nContent-Length: 2\r\n\r\n{}",
			"[403]"},
		"a page on another port": {"POST /mcp HTTP/1.1\r\n" + host +
			"Origin: http://127.0.0.1:1\r\nContent-Length: 2\r\n\r\n{}", "[403]"},
		"what a browser says": {"POST /mcp HTTP/1.1\r\n" + host +
			"Sec-Fetch-Site: cross-site\r\nContent-Length: 2\r\n\r\n{}", "[403]"},
		"a way out of the path": {"GET /v1/../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", "[307]"},
		"a token in the address": {"POST /mcp?access_token=" + s.token("ann", auth.ScopeRun) + " HTTP/1.1\r\n" + host +
			"Content-Length: 2\r\n\r\n{}", "[401]"},
	} {
		if got := fmt.Sprint(s.raw(test.request)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// Of two hundred concurrent callers, each gets its result or an error that can be retried.
func TestTwoHundredCallers(t *testing.T) {
	s := serve(t, "sandbox: {queue: 64}\n")
	s.untilReady()
	var answered, busy atomic.Int32
	var callers sync.WaitGroup
	for n := range 200 {
		token := s.token(fmt.Sprintf("caller-%d", n), auth.ScopeRun)
		callers.Go(func() {
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: s.url + "/mcp",
					HTTPClient: testenv.Bearer(token)},
				&mcp.ClientSessionOptions{ProtocolVersion: revisions[n%len(revisions)]})
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			answer, text := s.run(session, map[string]any{"language": "python", "code": fmt.Sprintf("result = %d", n)})
			failure, _ := answer["error"].(map[string]any)
			switch {
			case answer["ok"] == true && fmt.Sprint(answer["data"]) == fmt.Sprint(n):
				answered.Add(1)
			case failure["type"] == "RateLimit" || strings.Contains(text, "run it again"):
				busy.Add(1)
			default:
				t.Errorf("caller %d: got %v, %s", n, answer, text)
			}
		})
	}
	callers.Wait()
	t.Logf("%d answered, %d told to come back", answered.Load(), busy.Load())
	if answered.Load() == 0 {
		t.Error("no caller was answered")
	}
}

// Issue 24, item 4: a request of the protocol that the server cannot handle gets an error with its ID, as on stdio,
// and the session stays. The status alone left some clients waiting.
func TestUnknownMethodsGetAnAnswer(t *testing.T) {
	s := serve(t, "")
	token := s.token("ann", auth.ScopeRun, auth.ScopeAgents)
	for _, path := range []string{"/mcp", "/kernel/mcp", "/gateway/mcp"} {
		send := func(session, message string) (*http.Response, string) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+path, strings.NewReader(message))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res, string(raw)
		}
		res, _ := send("", `{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": `+
			`"2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}`)
		session := res.Header.Get("Mcp-Session-Id")
		send(session, `{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
		for message, want := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"tasks/none","params":{}}`:             `"id":1,"error":{"code":-32601`,
			`{"jsonrpc":"2.0","id":"a","method":"x\u0000y\u2028","params":{}}`:       `"id":"a","error":{"code":-32601`,
			`{"jsonrpc":"2.0","id":2,"method":""}`:                                   `"id":2,"error":{"code":-32601`,
			`{"jsonrpc":"2.0","id":3,"method":"resources/read"}`:                     `"id":3,"error":{"code":-32602`,
			`{"jsonrpc":"2.0","id":4,"method":"notifications/initialized"}`:          `"id":4,"error":{"code":-32600`,
			`{"jsonrpc":"2.0","method":"notifications/\u0001","params":{"a": null}}`: "",
		} {
			res, body := send(session, message)
			if want == "" && (res.StatusCode != http.StatusAccepted || body != "") ||
				want != "" && (res.StatusCode != http.StatusOK || !strings.Contains(body, want)) {
				t.Errorf("%s %s: %d, %s", path, message, res.StatusCode, body)
			}
		}
		res, body := send(session, `{"jsonrpc": "2.0", "id": 9, "method": "ping"}`)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, `"id":9,"result"`) {
			t.Errorf("%s: a ping after these: %d, %s", path, res.StatusCode, body)
		}
	}
}
