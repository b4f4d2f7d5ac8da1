package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server"
)

// scripted is a backend that the test controls.
type scripted struct {
	Backend
	in  *bufio.Reader // messages of the host
	out io.Writer     // messages to the host
	end chan struct{} // closed to end it
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{end: make(chan struct{})}
	ready := make(chan struct{})
	s.Backend = InProcess(t.Context(), func(ctx context.Context, in io.Reader, out io.Writer) error {
		s.in, s.out = bufio.NewReader(in), out
		close(ready)
		select {
		case <-s.end:
		case <-ctx.Done():
		}
		return nil
	}, func() error { return nil })
	<-ready
	return s
}

// hears returns the next line from the host.
func (s *scripted) hears(t *testing.T) string {
	t.Helper()
	line, err := s.in.ReadString('\n')
	if err != nil {
		t.Fatalf("the backend hears nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

func (s *scripted) says(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s.out, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// conversation is a host whose requests are answered by a sequence of backends.
type conversation struct {
	t      *testing.T
	toUs   *bufio.Reader
	host   io.WriteCloser
	next   chan Backend
	result chan error
}

func converse(t *testing.T, first Backend) *conversation {
	t.Helper()
	in, host := io.Pipe()
	fromRelay, out := io.Pipe()
	c := &conversation{t: t, toUs: bufio.NewReader(fromRelay), host: host, next: make(chan Backend, 8),
		result: make(chan error, 1)}
	go func() {
		c.result <- Relay(t.Context(), in, out, first, func(ctx context.Context) (Backend, error) {
			select {
			case b := <-c.next:
				return b, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		out.Close()
	}()
	return c
}

func (c *conversation) says(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.host, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conversation) hears() string {
	c.t.Helper()
	line, err := c.toUs.ReadString('\n')
	if err != nil {
		c.t.Fatalf("the host hears nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

// ends closes the host's end, and checks that the last backend notices.
func (c *conversation) ends(last *scripted) {
	c.t.Helper()
	c.host.Close()
	go io.Copy(io.Discard, c.toUs)
	if last != nil {
		if rest, err := io.ReadAll(last.in); err != nil {
			c.t.Errorf("the backend hears %q, %v, want the end", rest, err)
		}
		close(last.end)
	}
	if err := <-c.result; err != nil {
		c.t.Errorf("Relay: %v", err)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func want(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil ||
		fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A host continues with another backend: requests in progress fail with an error, and the new
// backend gets initialize again. Its answer is not sent to the host.
func TestAConversationGoesOnWithAnotherBackend(t *testing.T) {
	first, second := newScripted(t), newScripted(t)
	c := converse(t, first)
	c.says(initialize)
	want(t, first.hears(t), initialize)
	first.says(t, `{"jsonrpc":"2.0","id":1,"result":{"by":"first"}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","id":1,"result":{"by":"first"}}`)
	c.says(initialized)
	want(t, first.hears(t), initialized)
	c.says(`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`)
	first.hears(t)
	c.says(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	first.hears(t)
	first.says(t, `{"jsonrpc":"2.0","id":7,"result":{}}`)
	c.hears()
	close(first.end)
	lost := c.hears()
	if !strings.Contains(lost, `"id":"a"`) || !strings.Contains(lost, `"retryable":true`) ||
		!strings.Contains(lost, "send it again") {
		t.Errorf("got %s, want an error for request a", lost)
	}
	c.next <- second
	greeting := second.hears(t)
	if !strings.Contains(greeting, `"method":"initialize"`) ||
		!strings.Contains(greeting, `"id":"airlock-1-greeting"`) {
		t.Errorf("the second backend hears %s, want the greeting", greeting)
	}
	second.says(t, `{"jsonrpc":"2.0","id":"airlock-1-greeting","result":{}}`)
	want(t, second.hears(t), initialized)
	c.says(`{"jsonrpc":"2.0","id":8,"method":"tools/call"}`)
	want(t, second.hears(t), `{"jsonrpc":"2.0","id":8,"method":"tools/call"}`)
	second.says(t, `{"jsonrpc":"2.0","id":8,"result":{}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","id":8,"result":{}}`)
	c.ends(second)
}

// An answer to a request of a former backend is not taken for an answer to the next one, even
// if the IDs are equal.
func TestAnAnswerIsForTheBackendThatAsked(t *testing.T) {
	first, second := newScripted(t), newScripted(t)
	c := converse(t, first)
	first.says(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"read?"}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"read?"}}`)
	close(first.end)
	c.next <- second
	second.says(t, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"delete?"}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","id":"airlock-1-1","method":"elicitation/create",`+
		`"params":{"message":"delete?"}}`)
	c.says(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)              // to "read?"
	c.says(`{"jsonrpc":"2.0","id":"airlock-0-1","result":{"action":"yes"}}`)     // to no question
	c.says(`{"jsonrpc":"2.0","id":"airlock-1-1","result":{"action":"decline"}}`) // to "delete?"
	want(t, second.hears(t), `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`)
	second.says(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"airlock-1-1",`+
		`"reason":"r"}}`)
	c.ends(second)
}

// An initialize request without an answer is answered by the next backend.
func TestAGreetingThatWasNotAnswered(t *testing.T) {
	first, second := newScripted(t), newScripted(t)
	c := converse(t, first)
	c.says(initialize)
	first.hears(t)
	close(first.end)
	c.next <- second
	want(t, second.hears(t), initialize)
	second.says(t, `{"jsonrpc":"2.0","id":1,"result":{"by":"second"}}`)
	want(t, c.hears(), `{"jsonrpc":"2.0","id":1,"result":{"by":"second"}}`)
	c.says(initialized)
	want(t, second.hears(t), initialized)
	c.ends(second)
}

func TestWhatIsNoOrdinaryMessageIsHandedOn(t *testing.T) {
	first, second := newScripted(t), newScripted(t)
	c := converse(t, first)
	for _, line := range []string{`{broken`, `"text"`, `7`, `{"jsonrpc":"2.0","id":null,"method":"x"}`, `[]`} {
		c.says(line)
		if got := first.hears(t); got != line {
			t.Errorf("got %s, want %s", got, line)
		}
	}
	// an error shows in the answer
	go io.WriteString(c.host, `{"long":"`+strings.Repeat("x", server.MaxMessage)+`"}`+"\n")
	if got := c.hears(); !strings.Contains(got, "the message has more than") {
		t.Errorf("got %.200s, want that the message is too long", got)
	}
	c.says(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`) // of MCP 2025-03-26
	first.hears(t)
	close(first.end)
	lost := c.hears() + c.hears()
	if !strings.Contains(lost, `"id":1,`) || !strings.Contains(lost, `"id":2,`) {
		t.Errorf("got %s, want an error for each request of the batch", lost)
	}
	c.next <- second
	c.ends(second)
}

// The relay ends if the host closes its end while another backend is looked for.
func TestAHostGoesBetweenTwoBackends(t *testing.T) {
	first := newScripted(t)
	in, host := io.Pipe()
	looking := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- Relay(t.Context(), in, io.Discard, first, func(ctx context.Context) (Backend, error) {
			close(looking)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}()
	close(first.end)
	<-looking
	host.Close()
	if err := <-result; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// The relay ends if the host and its backend close at the same time. Backends that end
// immediately are not tried forever.
func TestTheEndOfARelay(t *testing.T) {
	first := newScripted(t)
	c := converse(t, first)
	close(first.end)
	c.ends(nil)

	ended := func() Backend {
		return InProcess(t.Context(), func(context.Context, io.Reader, io.Writer) error { return errors.New("broken") },
			func() error { return nil })
	}
	in, host := io.Pipe()
	defer host.Close()
	tries := 0
	err := Relay(t.Context(), in, io.Discard, ended(),
		func(context.Context) (Backend, error) { tries++; return ended(), nil })
	if err == nil || tries > maxMoves {
		t.Errorf("got %v after %d backends, want an error", err, tries)
	}
}
