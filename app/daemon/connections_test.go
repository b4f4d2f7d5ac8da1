package daemon

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// asks sends a request on a connection and returns the status and the whole answer.
func asks(t *testing.T, conn net.Conn, request string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		t.Error("busy without Retry-After")
	}
	return res.StatusCode, string(text)
}

const askHealth = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

// If the limit is reached, the connection that has been idle the longest is closed, whether it
// is new or between two requests.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	const most = 8
	s := serve(t, "", func(d *Daemon) { d.limits.connections = most })
	var idle []net.Conn
	for n := range most {
		conn := s.dial()
		if n%2 == 0 { // the others have never asked
			if status, body := asks(t, conn, askHealth); status != http.StatusOK {
				t.Fatalf("connection %d: got %d, %s", n, status, body)
			}
		}
		idle = append(idle, conn)
	}
	for n := range 3 * most { // each in the place of another
		if status, body := asks(t, s.dial(), askHealth); status != http.StatusOK {
			t.Errorf("connection %d beside %d that do nothing: got %d, %s", n, most, status, body)
		}
	}
	for n, conn := range idle {
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("connection %d got %q, %v, want its end alone", n, got, err)
		}
	}
}

// If all connections have a request in progress, a new one is answered with 503 and a
// Retry-After. A later attempt succeeds when one of them has ended.
func TestMoreConnectionsThanCanBeAnsweredAreTold(t *testing.T) {
	const most = 4
	s := serve(t, "", func(d *Daemon) { d.limits.connections = most })
	token := s.token("ann", auth.ScopeAgents)
	body := `{"name":"a","type":"supervised"}`
	var going []net.Conn
	for range most {
		going = append(going, s.send(post("/v1/agents", token, len(body))+body[:1]))
	}
	testenv.Await(t, "the requests have begun", func() bool { return s.daemon.bounded.answering.n.Load() >= most })
	for range 3 {
		if status, text := asks(t, s.dial(), askHealth); status != http.StatusServiceUnavailable ||
			!strings.Contains(text, "send it again") {
			t.Errorf("a connection too many: got %d, %s", status, text)
		}
	}
	for _, conn := range going {
		if status, text := asks(t, conn, body[1:]); status != http.StatusCreated {
			t.Errorf("a request that was under way: got %d, %s", status, text)
		}
	}
	if status, text := asks(t, s.dial(), askHealth); status != http.StatusOK {
		t.Errorf("when there is room again: got %d, %s", status, text)
	}
}

// A client that disconnects while its credential is looked up causes no error in the log.
func TestWhoDisconnectsIsNoError(t *testing.T) {
	var log strings.Builder
	d := &Daemon{identify: &auth.Authenticator{}, log: slog.New(newLimitedHandler(slog.NewTextHandler(&log, nil)))}
	gone, disconnect := context.WithCancel(t.Context())
	disconnect()
	for ctx, want := range map[context.Context]bool{gone: false, t.Context(): true} {
		log.Reset()
		answer := httptest.NewRecorder() // a client that ended only its half still reads
		d.refuse(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", nil),
			errors.New("the database is away"))
		if got := strings.Contains(log.String(), "could not be looked up"); got != want {
			t.Errorf("connected %v: got %q", want, log.String())
		}
		if answer.Code != http.StatusServiceUnavailable {
			t.Errorf("connected %v: got %d", want, answer.Code)
		}
	}
}
