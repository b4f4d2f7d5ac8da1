package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Methods of requests.
const (
	methodCallTool = "tools/call"
	methodDiscover = "server/discover"
)

// exchange is one request of the broker and the answer as it arrived. The SDK decodes
// answers into its own types, drops fields it does not know and fails on types
// it does not expect; so the tap keeps the bytes and gives the SDK a stub.
type exchange struct {
	relay   Relay            // nil: the server can ask no person
	timeout *PausableTimeout // nil without a relay
	token   string           // of progress, unique among all exchanges
	over    chan struct{}
	finish  func()    // closes over; may be called again
	allowed allowance // for the result

	// method and params go out in the place of those that the SDK was called with.
	method string
	params map[string]json.RawMessage // nil: the SDK's own
	// taken reports that the SDK need not read the result. It gets errTaken instead.
	taken bool
	task  string // the ID of the task that the request is about, or ""

	mu sync.Mutex
	id jsonrpc.ID
	answer
}

// tokens numbers exchanges. A server sees the numbers and can do nothing with them.
var tokens atomic.Int64

func newExchange(relay Relay, timeout *PausableTimeout) *exchange {
	over := make(chan struct{})
	return &exchange{
		relay: relay, timeout: timeout, token: "airlock-" + strconv.FormatInt(tokens.Add(1), 10),
		over: over, finish: sync.OnceFunc(func() { close(over) }),
	}
}

// errTaken is the answer that the SDK gets if the tap keeps the result. For any result, even
// an empty one, the SDK would allocate a buffer of 32 KiB for each type that it decodes.
var errTaken = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the result has been taken"}

// unlessTaken returns an error of the SDK, or nil if the tap has the result.
func (e *exchange) unlessTaken(err error) error {
	told, ok := errors.AsType[*jsonrpc.Error](err)
	if ok && told.Message == errTaken.Message && e.soFar().result != nil {
		return nil
	}
	return err
}

// answer is what is known about a request and what came back for it.
type answer struct {
	sent    bool            // the request may have reached the server
	result  json.RawMessage // nil until a result came
	refusal *jsonrpc.Error  // the JSON-RPC error that came instead
	status  int             // of an unsuccessful HTTP answer, or 0
	large   bool            // the answer was larger than allowed
	garbled bool            // the answer was not JSON-RPC
	deep    bool            // the answer was nested too deep to be read
	expired bool            // an HTTP server does not know the session any more: nothing was done
	needed  *SignInError    // the server, or the broker before it, wants a sign-in first
}

// soFar returns what is known by now.
func (e *exchange) soFar() answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer
}

// note changes what is known. A nil exchange knows nothing.
func (e *exchange) note(change func(*answer)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.answer)
}

// exchangeKey carries an exchange through the SDK down to the transport. A
// context is not meant for data, but it is the only thing that the SDK passes
// from the call of a method to the write of its message.
type exchangeKey struct{}

func withExchange(ctx context.Context, e *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, e)
}

func exchangeOf(ctx context.Context) *exchange {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	return e
}

// tap sits between the SDK and the wire of one connection.
type tap struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]*exchange
	heard   bool                 // any message came in: the server speaks JSON-RPC
	tasks   bool                 // the server runs tools as tasks
	asked   int                  // requests of the server that have no answer yet
	probe   jsonrpc.ID           // of server/discover, until it was refused in the server's place
	asking  map[string]*exchange // whose person a request of the server is for, by the mark in it
	marks   int
	turn    chan struct{} // holds that a large message is read, or a call has its result
	reading *large        // the last one

	listens atomic.Pointer[exchange] // for the next request that opens a stream of updates
	streams *streams
}

// maxAsked is the maximum number of a server's open requests. The SDK answers each in a
// goroutine, and a server that does not read the answers would accumulate them.
const maxAsked = 64

// tooManyRequests is the log message about further requests.
const tooManyRequests = "a request beyond the limit of open ones"

func newTap() *tap {
	return &tap{waiting: map[jsonrpc.ID]*exchange{}, asking: map[string]*exchange{}, turn: make(chan struct{}, 1),
		streams: newStreams()}
}

// outgoing notes a request of an exchange, before it is sent.
func (t *tap) outgoing(ctx context.Context, message jsonrpc.Message) {
	request, ok := message.(*jsonrpc.Request)
	if ok && request.Method == methodDiscover {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.probe = request.ID
		return
	}
	if ok && request.Method == methodListen {
		t.streams.begin(request.ID)
	}
	e := exchangeOf(ctx)
	if !ok || e == nil || !request.IsCall() {
		return
	}
	e.mu.Lock()
	e.id = request.ID
	e.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[request.ID] = e
}

// written notes that a message is out, or never will be.
func (t *tap) written(message jsonrpc.Message) {
	if _, ok := message.(*jsonrpc.Response); !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = max(0, t.asked-1)
}

// incoming stores the answer of an exchange and returns the message for the SDK. allowed is
// false if the message is to be dropped. stream is the ID of the call in whose answer the
// message arrived; it is not valid if the transport does not know it.
func (t *tap) incoming(message jsonrpc.Message, stream jsonrpc.ID) (result jsonrpc.Message, allowed bool) {
	if request, ok := message.(*jsonrpc.Request); ok {
		if request.Method == noticeAcknowledged {
			t.acknowledged(request.Params)
		}
		if t.relayed(request, stream) {
			return nil, true
		}
		return t.marked(request, stream), t.mayAsk(message)
	}
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return message, true
	}
	e := t.take(response.ID)
	if e == nil {
		t.noteTasks(response.Result)
		return message, true
	}
	if response.Error != nil {
		e.note(func(a *answer) { errors.As(response.Error, &a.refusal) })
		e.finish()
		return message, true
	}
	if !t.admits(e, response) {
		return e.tooLarge(response.ID), true
	}
	e.note(func(a *answer) { a.result = response.Result })
	if e.taken {
		return &jsonrpc.Response{ID: response.ID, Error: errTaken}, true
	}
	return &jsonrpc.Response{ID: response.ID, Result: stub(response.Result)}, true
}

// noteTasks notes whether the server runs tools as tasks (MCP 2025-11-25), which the SDK does not keep of the answer to
// initialize.
func (t *tap) noteTasks(result json.RawMessage) {
	var declared struct {
		Capabilities struct {
			Tasks struct {
				Requests struct {
					Tools struct {
						Call json.RawMessage `json:"call"`
					} `json:"tools"`
				} `json:"requests"`
			} `json:"tasks"`
		} `json:"capabilities"`
	}
	if strictjson.UnmarshalOpen(result, &declared) == nil && declared.Capabilities.Tasks.Requests.Tools.Call != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tasks = true
	}
}

func (t *tap) runsTasks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks
}

// mayAsk counts the requests of the server; its notifications need no answer.
func (t *tap) mayAsk(message jsonrpc.Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = true
	if request, ok := message.(*jsonrpc.Request); !ok || !request.IsCall() {
		return true
	}
	if t.asked >= maxAsked {
		return false
	}
	t.asked++
	return true
}

// refuseDiscovery returns, once, the answer of a server that does not know
// server/discover. The SDK drops what the server itself may answer later.
func (t *tap) refuseDiscovery() (jsonrpc.Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.probe.IsValid() {
		return nil, false
	}
	id := t.probe
	t.probe = jsonrpc.ID{}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}},
		true
}

// tooLarge answers for a response that was dropped because of its size.
func (t *tap) tooLarge(id jsonrpc.ID) jsonrpc.Message {
	return t.take(id).tooLarge(id)
}

func (e *exchange) tooLarge(id jsonrpc.ID) jsonrpc.Message {
	e.note(func(a *answer) { a.large = true })
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: "the answer is too large"}}
}

// tooDeep answers for a response that is nested deeper than JSON is read.
func (t *tap) tooDeep(id jsonrpc.ID) jsonrpc.Message {
	t.take(id).note(func(a *answer) { a.deep = true })
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError,
		Message: "the answer is nested too deep"}}
}

// garbled answers for a response that could not be read.
func (t *tap) garbled(id jsonrpc.ID) jsonrpc.Message {
	t.take(id).note(func(a *answer) { a.garbled = true })
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError,
		Message: "the answer is not JSON-RPC"}}
}

// take removes and returns the exchange that waits for an answer, or nil: the SDK's requests
// and invented IDs have no exchange.
func (t *tap) take(id jsonrpc.ID) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = true
	e := t.waiting[id]
	delete(t.waiting, id)
	return e
}

// forget ends an exchange that is no longer waited for.
func (t *tap) forget(e *exchange) {
	e.mu.Lock()
	id := e.id
	e.mu.Unlock()
	e.finish()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.asking, func(_ string, asked *exchange) bool { return asked == e })
	if t.waiting[id] == e {
		delete(t.waiting, id)
	}
}

// waitsForOne reports whether at most one exchange is in flight.
func (t *tap) waitsForOne() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) <= 1
}

// wasHeard reports whether the server has ever sent a JSON-RPC message.
func (t *tap) wasHeard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard
}

// headerMark is the annotation with which a tool asks for arguments in HTTP
// headers (MCP 2026-07-28, Streamable HTTP, x-mcp-header). The SDK sends them,
// for tools that it has seen in a list.
const headerMark = `"x-mcp-header"`

// stub is an answer to tools/list and tools/call alike that the SDK can always
// decode: empty, but for the tools whose definition the SDK itself needs.
func stub(result json.RawMessage) json.RawMessage {
	type tool struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	empty := json.RawMessage(`{"content":[],"tools":[]}`)
	if !bytes.Contains(result, []byte(headerMark)) {
		return empty
	}
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if strictjson.UnmarshalOpen(result, &list) != nil {
		return empty
	}
	tools := []tool{}
	for _, raw := range list.Tools {
		if parsed, err := catalog.ParseTool("", raw); err == nil && bytes.Contains(raw, []byte(headerMark)) {
			tools = append(tools, tool{parsed.Name, parsed.InputSchema})
		}
	}
	answer, err := json.Marshal(map[string]any{"content": []any{}, "tools": tools})
	if err != nil {
		return empty
	}
	return answer
}
