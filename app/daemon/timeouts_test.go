package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// dial opens a connection with the smallest receive buffer that the kernel allows.
func (s *served) dial() net.Conn {
	s.t.Helper()
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			// If this fails, the server can write more before it blocks.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096)
		})
	}}
	conn, err := narrow.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// send dials, and sends the beginning of a request.
func (s *served) send(request string) net.Conn {
	s.t.Helper()
	conn := s.dial()
	if _, err := io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// post returns the header of an authorized request with a body of the given length.
func post(path, token string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n", path, token, length)
}

// A client that does not complete its request, or sends it byte by byte, is disconnected. Other
// clients are answered meanwhile.
func TestWhoSendsSlowlyIsDropped(t *testing.T) {
	s := serve(t, "", func(d *Daemon) {
		d.limits.headerTime, d.limits.bodyTime, d.limits.idleTime = 2*time.Second, 2*time.Second, 2*time.Second
	})
	token := s.token("ann", auth.ScopeRun, auth.ScopeAgents)
	conns := map[string]net.Conn{}
	for name, begun := range map[string]string{
		"nothing":                 "",
		"half a header":           "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
		"no body":                 post("/mcp", token, 10),
		"half a body":             post("/mcp", token, 10) + "{",
		"no body for the API":     post("/v1/agents", token, 10),
		"half a body for no path": post("/nothing", token, 10) + "{",
		"a body in unending chunks": strings.Replace(
			post("/mcp", token, 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "1\r\n{\r\n",
		"one request and no other": "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	} {
		conns[name] = s.send(begun)
	}
	drip := s.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
	dripping, stop := context.WithCancel(t.Context())
	defer stop()
	dripped := make(chan struct{})
	go func() { // one byte after the other, until the connection is gone
		defer close(dripped)
		for dripping.Err() == nil {
			if _, err := io.WriteString(drip, "x"); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if status, _ := s.get("/healthz"); status != http.StatusOK {
		t.Errorf("another is answered %d meanwhile", status)
	}
	for name, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: after %q the connection is still open", name, got)
		}
	}
	<-dripped
	testenv.Await(t, "no request is being answered", func() bool { return s.daemon.bounded.answering.n.Load() == 0 })
}

// A client that does not read its answer is disconnected, and the memory of the answer is
// released. Other clients are answered meanwhile.
func TestWhoReadsSlowlyIsDropped(t *testing.T) {
	s := serve(t, "", func(d *Daemon) { d.limits.readTime = 2 * time.Second })
	s.untilReady()
	token := s.token("ann", auth.ScopeRun)
	session := s.connect(token, server.Stateless)
	answer, text := s.run(session, map[string]any{"language": "python",
		"code": "client.attach(bytes(range(256)) * (6 << 12), 'application/octet-stream', 'big.bin')"})
	run, _ := answer["run_id"].(string)
	if run == "" {
		t.Fatalf("got %v, %s", answer, text)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"airlock://runs/` + run +
		`/big.bin","_meta":{"io.modelcontextprotocol/protocolVersion":"` + server.Stateless + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	var readers []net.Conn
	for range 3 {
		request := strings.Replace(post("/mcp", token, len(body)), "Content-Type",
			"Mcp-Protocol-Version: "+server.Stateless+"\r\nMcp-Method: resources/read\r\nMcp-Name: airlock://runs/"+run+
				"/big.bin\r\nContent-Type", 1)
		conn := s.send(request + body)
		in := bufio.NewReaderSize(conn, 16)
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
			rest, _ := io.ReadAll(in)
			t.Fatalf("got %q, %v, want the beginning of an answer\n%s", line, err, rest)
		}
		readers = append(readers, conn)
	}
	if answer, text := s.run(session, map[string]any{"language": "python", "code": "result = 6 * 7"}); fmt.Sprint(
		answer["data"]) != "42" {
		t.Errorf("another is answered %v, %s meanwhile", answer, text)
	}
	testenv.Await(t, "no answer is being sent", func() bool { return s.daemon.bounded.answering.n.Load() == 0 })
	for _, conn := range readers {
		if got, err := io.Copy(io.Discard, conn); got >= 8<<20 {
			t.Errorf("got %d bytes, %v of an answer that was not taken in", got, err)
		}
	}
}

// A client that reads no answer before it has sent its whole message gets the refusal of a message that is too large.
func TestALargeBodyIsAnswered(t *testing.T) {
	s := serve(t, "")
	token := s.token("ann", auth.ScopeRun, auth.ScopeAgents)
	body := strings.NewReader(`{"x":"` + strings.Repeat("x", 40<<20) + `"}`)
	for _, path := range []string{"/mcp", gatewayPath, "/v1/agents"} {
		conn := s.send(post(path, token, body.Len()))
		if _, err := body.WriteTo(conn); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got %v, %v, want %d", path, res, err, http.StatusRequestEntityTooLarge)
		}
		body.Reset(`{"x":"` + strings.Repeat("x", 40<<20) + `"}`)
	}
}
