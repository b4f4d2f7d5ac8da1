package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// server is one run of the fake server.
type server struct {
	mode, notes    string
	stdin          io.Reader
	stdout, stderr io.Writer
	handling       sync.WaitGroup

	mu      sync.Mutex
	extra   []string                   // tools that were added at run time
	lists   int                        // how often the list was asked for
	calls   int                        // how often "count" was called
	nextID  int                        // of our own requests
	asked   map[string]chan<- message  // our own requests that wait for an answer
	stopped map[string]chan<- struct{} // closed when a call is cancelled, by request ID
	first   bool                       // a message came in

	late bool      // it answers nothing before it gets initialize
	held []message // messages that a late server has received so far
}

// serve answers messages until stdin ends.
func (s *server) serve() int {
	s.asked, s.stopped = map[string]chan<- message{}, map[string]chan<- struct{}{}
	reader := bufio.NewReader(s.stdin)
	for {
		line, err := reader.ReadBytes('\n')
		var m message
		if len(line) > 1 && json.Unmarshal(line, &m) == nil {
			if s.mode == "strict" && !s.first && m.Method != "initialize" {
				fmt.Fprintln(s.stderr, "expected initialize, got", m.Method)
				return 1
			}
			s.first = true
			s.take(m)
		}
		if err != nil {
			s.note("stdin ended")
			return 0
		}
	}
}

// take receives a message, or holds it until the server is not late any more.
func (s *server) take(m message) {
	if !s.late {
		s.receive(m)
		return
	}
	s.held = append(s.held, m)
	if m.Method != "initialize" {
		return
	}
	s.late = false
	for _, m := range s.held {
		s.receive(m)
	}
}

func (s *server) receive(m message) {
	if s.mode == "silent" || s.mode == "only-rubbish" {
		return
	}
	if m.Method == "" {
		s.answered(m)
		return
	}
	if s.mode == "rubbish" {
		fmt.Fprintln(s.stdout, "DEBUG: got", m.Method)
		fmt.Fprintln(s.stdout, `{"level":"info","id":1}`)
		fmt.Fprintln(s.stdout, "\xff\xfe\x00")
	}
	switch m.Method {
	case "initialize":
		s.initialize(m)
	case "server/discover":
		s.discover(m)
	case "tools/list":
		s.list(m)
	case "tools/call":
		stop := s.cancellable(m)
		s.handling.Go(func() { s.call(m, stop) }) // calls run at the same time
	case "notifications/cancelled":
		s.cancel(m)
	case "subscriptions/listen":
		s.send(map[string]any{"method": "notifications/subscriptions/acknowledged", "params": map[string]any{}})
	default:
		if m.ID != nil && s.mode != "ignoring" {
			s.refuse(m, -32601, "method not found: "+m.Method)
		}
	}
}

func (s *server) initialize(m message) {
	switch s.mode {
	case "modern", "late-modern":
		s.refuse(m, -32022, "unsupported protocol version")
		return
	case "refusing":
		s.refuse(m, -32000, "license expired")
		return
	case "misshapen":
		s.answer(m, map[string]any{"protocolVersion": 7})
		return
	}
	s.note("initialize %s", m.Params)
	s.answer(m, map[string]any{
		"protocolVersion": "2025-11-25",
		"serverInfo":      map[string]string{"name": "fake", "version": "1"},
		"capabilities":    map[string]any{"tools": map[string]bool{"listChanged": true}},
	})
}

func (s *server) discover(m message) {
	switch s.mode {
	case "modern", "late-modern":
		s.note("discover %s", m.Params)
		s.answer(m, map[string]any{
			"resultType": "complete", "supportedVersions": []string{"2026-07-28"}, "ttlMs": 0, "cacheScope": "private",
			"capabilities": map[string]any{"tools": map[string]bool{"listChanged": true}},
		})
	case "ignoring":
	default:
		s.refuse(m, -32601, "method not found: server/discover")
	}
}

// cancellable returns what is closed when the client cancels a call. It is there before
// the next message is read, which may be the cancellation.
func (s *server) cancellable(m message) <-chan struct{} {
	stop := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[string(m.ID)] = stop
	return stop
}

// cancel stops a running call of "slow".
func (s *server) cancel(m message) {
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop, ok := s.stopped[string(params.RequestID)]; ok {
		delete(s.stopped, string(params.RequestID))
		close(stop)
	}
}

// ask sends a request of our own and waits for the answer.
func (s *server) ask(method string, params any) message {
	s.mu.Lock()
	s.nextID++
	id := fmt.Sprintf("%q", fmt.Sprintf("ask-%d", s.nextID))
	answer := make(chan message, 1)
	s.asked[id] = answer
	s.mu.Unlock()
	s.send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	return <-answer
}

func (s *server) answered(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.asked[string(m.ID)]; ok {
		delete(s.asked, string(m.ID))
		answer <- m
	}
}

func (s *server) answer(m message, result any) { s.send(map[string]any{"id": m.ID, "result": result}) }

func (s *server) refuse(m message, code int, text string) {
	s.send(map[string]any{"id": m.ID, "error": map[string]any{"code": code, "message": text}})
}

func (s *server) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		fmt.Fprintln(s.stderr, "fakeserver:", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stdout.Write(append(line, '\n'))
}
