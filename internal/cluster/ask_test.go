package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// serveQuestions has a node answer the questions of other nodes.
func serveQuestions(t *testing.T, n *cluster.Node, answer func(context.Context, []byte) ([]byte, error)) {
	t.Helper()
	server := &http.Server{Handler: http.NotFoundHandler()}
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(server, answer) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
}

// ask asks until a number of nodes have been asked: a node learns of the others with its heartbeat.
func ask(t *testing.T, n *cluster.Node, nodes int) (answers []cluster.Answer) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d answers", nodes), func() bool {
		n.Owner(t.Context(), madeID) // of no node, so that the nodes are read again
		answers = n.Ask(t.Context(), []byte("hello"))
		return len(answers) == nodes
	})
	return answers
}

func TestQuestionsBetweenNodes(t *testing.T) {
	db := open(t)
	a, b, c := join(t, db, "a"), join(t, db, "b"), join(t, db, "c")
	echo := func(_ context.Context, question []byte) ([]byte, error) { return append(question, " from b"...), nil }
	serveQuestions(t, b, echo)
	serveQuestions(t, c, func(context.Context, []byte) ([]byte, error) { return nil, errors.New("not now") })
	for _, got := range ask(t, a, 2) {
		switch {
		case got.Node == "b" && string(got.Body) == "hello from b" && got.Err == nil:
		case got.Node == "c" && got.Err != nil:
		default:
			t.Errorf("the answer of node %s: %q, %v", got.Node, got.Body, got.Err)
		}
	}
	var none *cluster.Node
	if got := none.Ask(t.Context(), nil); got != nil || none.Silent() != nil {
		t.Errorf("without a cluster: %v", got)
	}
}

// A request that a node forwards for a client is not a question, with any path and any headers.
func TestClientsAskNoQuestions(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first, _ := serve(t, a, describe(a)), serve(t, b, describe(b))
	id := b.Mark(madeID)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.client.URL+"/node?id="+id,
		strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Airlock-Client-Address") // a header that a proxy removes
	r.Header.Set("Airlock-Client-Address", "")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); !strings.HasPrefix(string(text), "b ") {
		t.Errorf("the request was taken for a question: %s", text)
	}
}

// Connections that prove nothing are limited: the oldest are closed, and nodes reach each other meanwhile.
func TestConnectionsOfStrangersAreLimited(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	serveQuestions(t, b, func(context.Context, []byte) ([]byte, error) { return []byte("yes"), nil })
	address := b.Address()
	var open []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	if got := ask(t, a, 1); len(got) != 1 || got[0].Err != nil || string(got[0].Body) != "yes" {
		t.Errorf("a node among strangers: %v", got)
	}
	for i, conn := range open { // each ends: the oldest by the limit, the others at the end of their time
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var netErr net.Error
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &netErr) && netErr.Timeout() {
			t.Fatalf("connection %d is open: %v", i, err)
		}
	}
}
