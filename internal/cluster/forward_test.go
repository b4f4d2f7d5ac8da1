package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

const madeID = "run_0123456789abcdef0123456789abcdef"

// served is a node that answers requests of clients and of other nodes.
type served struct {
	*cluster.Node
	client *httptest.Server
	failed chan bool // receives gone when another node does not answer
	stop   func()    // ends the answers to other nodes
}

// serve has a node answer. A request that names an ID goes to the node of the ID.
func serve(t *testing.T, n *cluster.Node, answer http.HandlerFunc) *served {
	t.Helper()
	s := &served{Node: n, failed: make(chan bool, 10)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Here", n.Name()) // another node answers without it
		seen := r.Header.Values("Authorization")
		r.Header.Set("Authorization", "replaced by the face")
		failed := func(gone bool) {
			s.failed <- gone
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if id := r.URL.Query().Get("id"); n.Forward(w, r, id, failed) ||
			id == "new" && n.ForwardNew(w, r, r.URL.Query().Get("session"), func() { s.failed <- false }) {
			return
		}
		r.Header["Authorization"] = seen
		answer(w, r)
	})
	s.client = httptest.NewServer(n.FromClients(handler))
	t.Cleanup(s.client.Close)
	nodes := &http.Server{Handler: handler}
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(nodes, nil) }()
	s.stop = sync.OnceFunc(func() {
		nodes.Close()
		<-ended
	})
	t.Cleanup(s.stop)
	return s
}

func (s *served) get(t *testing.T, id string, change func(*http.Request)) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.client.URL+"/path?id="+id,
		strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// describe answers with what a handler sees of a request.
func describe(n *cluster.Node) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q %q %s %v", n.Name(), r.Host, body, r.Header["Authorization"],
			r.Header["Airlock-Client-Address"], strings.Split(r.RemoteAddr, ":")[0], w.Header())
	}
}

// issue 28: a request goes to the node that has made the ID, with what the client has sent.
func TestARequestGoesToTheNodeOfItsID(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first, second := serve(t, a, describe(a)), serve(t, b, describe(b))
	forge := func(r *http.Request) {
		r.Host = "airlock.example"
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Airlock-Client-Address", "6.6.6.6:6")
		r.Header.Set("X-Forwarded-For", "6.6.6.6")
	}
	id := b.Mark(madeID)
	if status, text := first.get(t, id, forge); status != http.StatusOK || text !=
		`b airlock.example body ["Bearer secret"] [] 127.0.0.1 map[X-Here:[b]]` {
		t.Errorf("the ID of b at a: %d %s", status, text)
	}
	c := join(t, db, "c") // a moment before its first ID
	third := serve(t, c, describe(c))
	testenv.Await(t, "b reads the nodes again", func() bool {
		_, text := second.get(t, c.Mark(madeID), nil)
		return strings.HasPrefix(text, "c ")
	})
	if _, text := third.get(t, id, nil); !strings.HasPrefix(text, "b ") {
		t.Errorf("the ID of b at c: %s", text)
	}
	forged := []string{"", "x", madeID, id[:len(id)-1] + "0", id[:len(id)-1] + "1", "x" + id, strings.ToUpper(id),
		id[len(id)-12:], strings.Repeat("0", 12), a.Mark(madeID)}
	for _, id := range forged {
		if _, text := first.get(t, id, nil); !strings.HasPrefix(text, "a ") {
			t.Errorf("the ID %q was forwarded: %s", id, text)
		}
	}
}

func TestAnIDTellsNothing(t *testing.T) {
	db := open(t)
	a := join(t, db, "a")
	o := options("b")
	o.Keys = cluster.Keys{[]byte("another key")}
	other, err := cluster.Join(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	id := a.Mark(madeID)
	if id == madeID || len(id) != len(madeID) || id != a.Mark(madeID) || id == other.Mark(madeID) {
		t.Errorf("%s and %s", id, other.Mark(madeID))
	}
	var none *cluster.Node
	if none.Mark(madeID) != madeID || none.Marker() != nil || none.Serve(&http.Server{}, nil) == nil {
		t.Error("a process without a cluster marks IDs")
	}
}

// A request makes one hop, also if two nodes do not agree about its node.
func TestAForwardedRequestIsNotForwardedAgain(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	var hops []string
	id := b.Mark(madeID)
	first := serve(t, a, func(http.ResponseWriter, *http.Request) { hops = append(hops, "a") })
	serve(t, b, func(w http.ResponseWriter, r *http.Request) {
		if b.Forward(w, r, a.Mark(madeID), func(bool) {}) {
			t.Error("a request made a second hop")
		}
		hops = append(hops, "b")
	})
	first.get(t, id, nil)
	if !slices.Equal(hops, []string{"b"}) {
		t.Errorf("answered by %v", hops)
	}
}

// A stream is passed on as it is written, and its end at the client is its end at the owner.
func TestAStreamIsForwardedAndCancelled(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	ended, next := make(chan error, 1), make(chan string)
	first := serve(t, a, nil)
	serve(t, b, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case text := <-next:
				fmt.Fprintln(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				ended <- context.Cause(r.Context())
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, first.client.URL+"/?id="+b.Mark(madeID), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { next <- "one" }()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for _, want := range []string{"one", "two"} {
		if got, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			t.Fatalf("got %q (%v), want %q", got, err, want)
		}
		if want == "one" {
			next <- "two" // only after the first was read
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream of the owner ended with %v", err)
	}
}

// issue 28: a reader that is slow holds back the owner: the buffers between them are bounded.
func TestASlowReaderHoldsBackTheOwner(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first := serve(t, a, nil)
	part, written := bytes.Repeat([]byte("x"), 1<<20), make(chan int, 1)
	serve(t, b, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * time.Second))
		n := 0
		for n < 1<<30 {
			if _, err := w.Write(part); err != nil {
				break
			}
			n += len(part)
		}
		written <- n
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.client.URL+"/?id="+b.Mark(madeID), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r) // and nothing of the answer is read
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n := <-written; n > 64<<20 {
		t.Errorf("the owner wrote %d MiB for a reader that does not read", n>>20)
	}
}

// The address for nodes accepts the certificates of nodes with a lease alone.
func TestOnlyNodesWithALeaseAreAccepted(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first := serve(t, a, describe(a))
	serve(t, b, describe(b))
	id := b.Mark(madeID)
	first.get(t, id, nil) // a connection is open now
	var address string
	if err := db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT address FROM node WHERE name = 'b'").Scan(&address)
	}); err != nil {
		t.Fatal(err)
	}
	stranger := httptest.NewUnstartedServer(nil)
	stranger.StartTLS()
	defer stranger.Close()
	for name, with := range map[string][]tls.Certificate{"no certificate": nil, "another": stranger.TLS.Certificates} {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, Certificates: with,
			NextProtos: []string{"h2"}})
		if err == nil { // with TLS 1.3 the client sees the refusal when it reads
			_, err = conn.Read(make([]byte, 100))
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	// A process that was replaced keeps its certificate and its connections.
	err := db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE node SET epoch = 2, id = 'a/2', pin = 'new' WHERE name = 'a'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	<-a.Lost()
	testenv.Await(t, "b reads the nodes again", func() bool {
		status, text := first.get(t, id, nil)
		if status != http.StatusForbidden && !strings.HasPrefix(text, "b ") {
			t.Fatalf("%d %s", status, text)
		}
		return status == http.StatusForbidden
	})
}

func TestANodeThatIsGone(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first := serve(t, a, describe(a))
	id := b.Mark(madeID)
	first.get(t, id, nil) // b has joined, and does not answer
	if gone := <-first.failed; gone {
		t.Error("a node that lives counts as gone")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, "a reads the nodes again", func() bool {
		if status, _ := first.get(t, id, nil); status != http.StatusServiceUnavailable {
			t.Fatal(status)
		}
		return <-first.failed
	})
}

// A request is sent again if the other node says that it has not processed it (RFC 9113, section 6.8), and never
// otherwise.
func TestARequestThatWasNotProcessedIsSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		body   int    // bytes
		last   uint32 // the last stream that the node may have processed, as it says
		leaves bool
		want   string
	}{
		"not processed":              {body: 4, want: "status 200, processed 1, failed []"},
		"the largest body":           {body: 64 << 10, want: "status 200, processed 1, failed []"},
		"a larger body":              {body: 64<<10 + 1, want: "status 503, processed 0, failed [false]"},
		"it may have been processed": {body: 4, last: 1, want: "status 503, processed 0, failed [false]"},
		"the node leaves":            {body: 4, leaves: true, want: "status 503, processed 0, failed [true]"},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			a, b := join(t, db, "a"), join(t, db, "b")
			first := serve(t, a, nil)
			var processed atomic.Int32
			serveSecond(t, b, c.last, c.leaves, func(_ http.ResponseWriter, r *http.Request) {
				if n, err := io.Copy(io.Discard, r.Body); int(n) != c.body || err != nil {
					t.Errorf("the body has %d bytes (%v), want %d", n, err, c.body)
				}
				processed.Add(1)
			})
			status, _ := first.get(t, b.Mark(madeID), func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, c.body))), int64(c.body)
			})
			failed := make([]bool, len(first.failed))
			for i := range failed {
				failed[i] = <-first.failed
			}
			got := fmt.Sprintf("status %d, processed %d, failed %v", status, processed.Load(), failed)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// serveSecond has a node answer other nodes from their second connection on. On the first one, it reads a request, and
// ends with the number of the last stream that it may have processed. If leaves is set, there is no second connection.
func serveSecond(t *testing.T, n *cluster.Node, last uint32, leaves bool, answer http.HandlerFunc) {
	t.Helper()
	server := &http.Server{Handler: answer}
	end := func() {
		if leaves {
			n.Leave(t.Context())
			over, cancel := context.WithCancel(t.Context())
			cancel()
			_ = server.Shutdown(over) // it closes the listener, and does not wait
		}
	}
	var connections atomic.Int32
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, handler http.Handler) {
			if connections.Add(1) > 1 {
				//lint:ignore SA1019 net/http has no other way to serve one connection
				(&http2.Server{}).ServeConn(conn, &http2.ServeConnOpts{BaseConfig: server, Handler: handler})
			} else if err := readAndEnd(conn, last, end); err != nil {
				t.Error(err)
			}
		}}
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(server, nil) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
}

// readAndEnd reads a request of HTTP/2, calls end, and says which stream was the last that may have been processed. It
// returns when the client has closed the connection.
func readAndEnd(conn *tls.Conn, last uint32, end func()) error {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	const window = 1 << 20 // for the whole body
	if err := errors.Join(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
		framer.WriteWindowUpdate(0, window)); err != nil {
		return err
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
			end()
			err := framer.WriteGoAway(last, http2.ErrCodeNo, nil)
			if last > 0 { // the client waits for an answer
				err = errors.Join(err, conn.CloseWrite())
			}
			_, _ = io.Copy(io.Discard, conn)
			return err
		}
	}
}

// An answer that begins before its request has been read to the end is not cut.
func TestAnAnswerBeginsBeforeTheEndOfItsRequest(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first := serve(t, a, describe(a))
	serve(t, b, func(w http.ResponseWriter, r *http.Request) {
		begin := make([]byte, 4)
		if _, err := io.ReadFull(r.Body, begin); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s, ", begin)
		_ = http.NewResponseController(w).Flush()
		rest, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v", rest, err)
	})
	id := b.Mark(madeID)
	testenv.Await(t, "a knows b", func() bool {
		_, text := first.get(t, id, nil)
		return strings.HasPrefix(text, "body")
	})
	body, more := io.Pipe()
	go more.Write([]byte("head"))
	client := &http.Client{Timeout: time.Minute} // a server that reads all before it answers waits forever
	answer, err := client.Post(first.client.URL+"/path?id="+id, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := more.Write([]byte("tail")); err != nil {
		t.Error(err)
	}
	_ = more.Close() // it returns no error
	if text, err := io.ReadAll(answer.Body); string(text) != "head, tail <nil>" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}
