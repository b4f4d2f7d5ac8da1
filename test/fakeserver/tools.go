package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// tools are the definitions in the "good" list, as they go over the wire.
var tools = []string{
	`{"name":"echo","title":"Echo","description":"Returns its arguments.","inputSchema":{"type":"object"},` +
		`"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"forbidden"},"x":1.0}`,
	`{"name":"fail","description":"Reports an error of the tool itself.","inputSchema":{"type":"object"}}`,
	`{"name":"refuse","description":"Is refused by the server.","inputSchema":{"type":"object"}}`,
	`{"name":"odd","description":"Returns a result with fields and unexpected types.","inputSchema":{"type":"object"}}`,
	`{"name":"no_result","description":"Returns something that is no result.","inputSchema":{"type":"object"}}`,
	`{"name":"want_input","description":"Asks for input in its result.","inputSchema":{"type":"object"}}`,
	`{"name":"slow","description":"Waits until it is cancelled.","inputSchema":{"type":"object"}}`,
	`{"name":"slow_read","description":"Waits until it is cancelled, and only reads.",` +
		`"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
	`{"name":"crash","description":"Ends the server in the middle of the call.","inputSchema":{"type":"object"}}`,
	`{"name":"crash_again","description":"The same; calling it twice does nothing twice.",` +
		`"inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}`,
	`{"name":"big","description":"Returns a text of the given size.","inputSchema":{"type":"object",` +
		`"properties":{"bytes":{"type":"integer"}}}}`,
	`{"name":"environment","description":"Lists the environment.","inputSchema":{"type":"object"}}`,
	`{"name":"count","description":"Counts its calls.","inputSchema":{"type":"object"}}`,
	`{"name":"grow","description":"Adds a tool and announces it several times.","inputSchema":{"type":"object",` +
		`"properties":{"name":{"type":"string"}}}}`,
	`{"name":"ask","description":"Sends a request to the client and returns its answer.",` +
		`"inputSchema":{"type":"object","properties":{"method":{"type":"string"}}}}`,
	`{"name":"spawn","description":"Starts a process that outlives its parent and returns its ID.",` +
		`"inputSchema":{"type":"object"}}`,
}

const plainTool = `{"name":%q,"description":"A plain tool.","inputSchema":{"type":"object"}}`

func (s *server) list(m message) {
	var params struct{ Cursor string }
	json.Unmarshal(m.Params, &params) // no cursor is the first page
	s.mu.Lock()
	s.lists++
	lists, items := s.lists, slices.Clone(tools)
	for _, name := range s.extra {
		items = append(items, fmt.Sprintf(plainTool, name))
	}
	s.mu.Unlock()
	page := map[string]any{"ttlMs": 0, "cacheScope": "private"}
	switch s.mode {
	case "no-list":
		s.refuse(m, -32601, "method not found: tools/list")
		return
	case "bad-list":
		s.answer(m, map[string]any{"tools": "none"})
		return
	case "huge-list":
		s.answer(m, map[string]any{"tools": []string{strings.Repeat("x", 20<<20)}})
		return
	case "three-pages":
		at := map[string]int{"": 0, "page 2": 1, "page 3": 2}[params.Cursor]
		items = []string{fmt.Sprintf(plainTool, fmt.Sprintf("tool_%d", at+1))}
		if at < 2 {
			page["nextCursor"] = fmt.Sprintf("page %d", at+2)
		}
	case "looping":
		items = []string{fmt.Sprintf(plainTool, fmt.Sprintf("tool_%d", lists))}
		page["nextCursor"] = "again"
	case "endless":
		items = []string{fmt.Sprintf(plainTool, fmt.Sprintf("tool_%d", lists))}
		page["nextCursor"] = fmt.Sprint("page ", lists)
	case "wrong-types":
		items = []string{`null`, `7`, `"echo"`, `[]`, `{}`, `{"name":7}`,
			`{"name":"echo","inputSchema":{"type":"object"},"annotations":[],"icons":"x","_meta":3}`,
			`{"name":"bad name","inputSchema":{}}`, `{"name":"no_schema"}`, `{"name":"text_schema","inputSchema":"x"}`}
	case "brief":
		items = []string{fmt.Sprintf(plainTool, fmt.Sprintf("tool_%d", lists))}
		page["ttlMs"] = 1
	}
	raw := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw[i] = json.RawMessage(item)
	}
	page["tools"] = raw
	s.answer(m, page)
}

// call is one call of a tool.
func (s *server) call(m message, stop <-chan struct{}) {
	var params struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		s.refuse(m, -32602, err.Error())
		return
	}
	s.note("call %s %s", params.Name, params.Arguments)
	switch params.Name {
	case "echo":
		s.answer(m, map[string]any{"content": []any{text(string(params.Arguments))},
			"structuredContent": map[string]any{"got": params.Arguments}})
	case "fail":
		s.answer(m, map[string]any{"content": []any{text("disk full")}, "isError": true})
	case "odd":
		s.answer(m, json.RawMessage(
			`{"content":[{"type":"hologram","depth":1.50},null,7],"structuredContent":[1e400],"isError":"no",`+
				`"x":{"y":1.0},"_meta":5}`))
	case "no_result":
		s.answer(m, json.RawMessage(`"done"`))
	case "want_input":
		s.answer(m, json.RawMessage(
			`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create",`+
				`"params":{"message":"password?"}}}}`))
	case "slow", "slow_read":
		<-stop
		s.note("cancelled")
	case "crash", "crash_again":
		fmt.Fprintln(s.stderr, "segmentation fault")
		os.Exit(1)
	case "big":
		var size struct{ Bytes int }
		json.Unmarshal(params.Arguments, &size) // none is 0
		s.answer(m, map[string]any{"content": []any{text(strings.Repeat("x", size.Bytes))}})
	case "environment":
		s.answer(m, map[string]any{"content": []any{text(strings.Join(os.Environ(), "\n"))}})
	case "count":
		s.mu.Lock()
		s.calls++
		count := s.calls
		s.mu.Unlock()
		s.answer(m, map[string]any{"content": []any{text(fmt.Sprint(count))}})
	case "grow":
		s.grow(m, params.Arguments)
	case "ask":
		s.askClient(m, params.Arguments)
	case "spawn":
		s.spawn(m)
	default:
		s.refuse(m, -32602, "Unknown tool: "+params.Name)
	}
}

func text(t string) map[string]string { return map[string]string{"type": "text", "text": t} }

func (s *server) grow(m message, arguments json.RawMessage) {
	var add struct{ Name string }
	json.Unmarshal(arguments, &add) // an empty name is left out by the client
	s.mu.Lock()
	s.extra = append(s.extra, add.Name)
	s.mu.Unlock()
	for range 5 {
		s.send(map[string]any{"method": "notifications/tools/list_changed"})
	}
	s.answer(m, map[string]any{"content": []any{}})
}

func (s *server) askClient(m message, arguments json.RawMessage) {
	var ask struct {
		Method string
		Params json.RawMessage
	}
	json.Unmarshal(arguments, &ask) // an empty method is refused by the client
	got := s.ask(ask.Method, ask.Params)
	s.answer(m, map[string]any{"content": []any{},
		"structuredContent": map[string]any{"result": got.Result, "error": got.Error}})
}

// spawn leaves a process behind, as npx and shells do.
func (s *server) spawn(m message) {
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		s.refuse(m, -32000, err.Error())
		return
	}
	s.answer(m, map[string]any{"content": []any{text(fmt.Sprint(child.Process.Pid))}})
}
