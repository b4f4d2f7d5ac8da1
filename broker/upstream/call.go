package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxErrorMessage bounds a server's error message, in characters.
const maxErrorMessage = 2000

// Call calls a tool and returns its CallToolResult as it arrived. The name goes
// out byte for byte and the arguments, a JSON object or nil for {}, with every
// value unchanged. A server that is not connected is connected first. With the name of
// another feature (catalog.FeatureName), Call reads the resource or gets the prompt.
//
// A result with isError set is a result. All other failures are a *CallError,
// except ErrClosed and the cancellation of ctx, which is an error that wraps
// context.Canceled. When ctx ends or CallTimeout is over, a cancellation is
// sent to the server.
func (s *Set) Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return s.CallFor(ctx, nil, serverID, name, arguments)
}

// CallFor is Call for a person whom the server may ask through relay, which also
// hears of progress. While the person is asked, CallTimeout does not count.
func (s *Set) CallFor(ctx context.Context, relay Relay, serverID, name string,
	arguments json.RawMessage) (json.RawMessage, error) {
	server, done, ok := s.use(serverID)
	if !ok {
		return nil, &CallError{ServerID: serverID, ToolName: name, Type: UnknownTool,
			Message: "there is no such server"}
	}
	defer done()
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	ctx, cancel := server.within(ctx)
	defer cancel()
	ctx, timeout, stop := WithPausableTimeout(ctx, server.config.CallTimeout)
	defer stop()
	if result, handled, err := server.special(ctx, name); handled {
		return result, err
	}
	e := &calling{relay: relay, timeout: timeout, name: name, arguments: arguments}
	if err := e.request(name, arguments); err != nil {
		return nil, server.failure(name, ToolError, "the name cannot be sent", false, err)
	}
	for round := 1; ; round++ {
		result, err := server.callOnce(ctx, e)
		if err != nil {
			return nil, err
		}
		if t, isTask, err := e.taskOf(result); err != nil {
			return nil, server.failure(name, InvalidOutput, err.Error(), false, nil)
		} else if isTask {
			return server.awaitTask(ctx, e, t)
		}
		needs, err := inputOf(result)
		switch {
		case err != nil:
			return nil, server.failure(name, InvalidOutput, err.Error(), false, nil)
		case !needs.required:
			return result, nil
		case relay == nil:
			return nil, server.failure(name, ToolError, server.whyNot(needs), false, nil)
		case round == maxRounds:
			return nil, server.failure(name, ToolError,
				fmt.Sprintf("the tool has asked for input %d times without an answer", maxRounds), false, nil)
		}
		if e.more, err = server.answers(ctx, newExchange(relay, timeout), needs); err != nil {
			return nil, server.failure(name, ToolError, err.Error(), false, nil)
		}
	}
}

// calling is a call of a tool over all its rounds.
type calling struct {
	relay     Relay // nil: no person can be asked
	timeout   *PausableTimeout
	name      string
	arguments json.RawMessage
	method    string
	params    map[string]json.RawMessage // of the method
	more      map[string]json.RawMessage // further params of this round

	asTask bool   // the tool is called as a task of MCP 2025-11-25
	told   string // the last status of the task that was passed on
	steps  int    // statuses passed on
}

// exchange returns a new exchange for one attempt.
func (c *calling) exchange() *exchange {
	e := newExchange(c.relay, c.timeout)
	e.taken = true
	if c.relay == nil && c.method == methodCallTool && !c.asTask {
		return e
	}
	e.method, e.params = c.method, maps.Clone(c.params)
	maps.Copy(e.params, c.more)
	return e
}

// callOnce makes one round: an attempt, and another one if nothing was sent.
func (s *server) callOnce(ctx context.Context, c *calling) (json.RawMessage, error) {
	for attempt := 1; ; attempt++ {
		result, err := s.call(ctx, c, attempt == 1)
		if !errors.Is(err, errNothingSent) {
			return result, err
		}
	}
}

// errNothingSent means that the session was over before the call was written, or
// that the server refused the call because it did not know the session: a new
// session may try it.
var errNothingSent = errors.New("the session was over before the call was taken")

// call makes one attempt. mayRepeat lets it fail with errNothingSent.
func (s *server) call(ctx context.Context, c *calling, mayRepeat bool) (json.RawMessage, error) {
	name := c.name
	session, err := s.connected(ctx)
	if err != nil {
		return nil, s.notConnected(ctx, name, err)
	}
	session.wantLogs(ctx, c.relay)
	if c.asTask = c.method == methodCallTool && session.tap.runsTasks() && s.needsTask(name); c.asTask {
		c.params["task"] = json.RawMessage("{}")
	} else {
		delete(c.params, "task")
	}
	e := c.exchange()
	e.allowed = allowanceOf(ctx)
	defer session.tap.forget(e)
	start := time.Now()
	tracing, params, ended := s.traced(ctx, c.method, &mcp.CallToolParams{Name: name, Arguments: c.arguments})
	if c.method == methodCallTool {
		_, err = session.client.CallTool(withExchange(tracing, e), params)
	} else {
		err = session.send(withExchange(tracing, e), e)
	}
	err = e.unlessTaken(err)
	ended(e.soFar(), err)
	if err == nil {
		return s.accept(name, e.soFar().result)
	}
	lost, got := session.lost(err), e.soFar()
	if got.expired {
		session.broken.Store(true)
	}
	if mayRepeat && ctx.Err() == nil && (got.expired || lost && !got.sent) {
		return nil, errNothingSent
	}
	return nil, s.classify(ctx, name, got, err, time.Since(start))
}

// accept checks that an answer, which was read as JSON, is a result of a tool at all.
func (s *server) accept(name string, raw json.RawMessage) (json.RawMessage, error) {
	s.succeeded()
	if !utf8.Valid(raw) {
		return nil, s.failure(name, InvalidOutput, "the result is not UTF-8", false, nil)
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil, s.failure(name, InvalidOutput, "the server answered with something other than a tool result", false,
			nil)
	}
	return raw, nil
}

// notConnected is a call that never left.
func (s *server) notConnected(ctx context.Context, name string, err error) error {
	var start *StartError
	var needed *SignInError
	switch {
	case s.closing() || errors.Is(err, ErrClosed):
		return fmt.Errorf("calling tool %q of server %q: %w", name, s.config.ID, ErrClosed)
	case errors.As(err, &needed):
		return needed.CallError(name)
	case errors.Is(err, ErrUnauthorized):
		return s.failure(name, ToolError, "the server refused Airlock's credentials", false, err)
	case errors.As(err, &start): // before the next: an attempt can end before ctx
		return s.failure(name, TransientNetwork, "the server is not there: "+start.Problem, true, err)
	case cancelled(ctx):
		return fmt.Errorf("calling tool %q of server %q: %w", name, s.config.ID, context.Canceled)
	}
	return s.failure(name, Timeout, "the server could not be reached in time", true, err)
}

// classify returns the error of a call that has no result.
func (s *server) classify(ctx context.Context, name string, got answer, err error, waited time.Duration) error {
	again := !got.sent || s.harmless(name)
	switch {
	case s.closing():
		return fmt.Errorf("calling tool %q of server %q: %w", name, s.config.ID, ErrClosed)
	case cancelled(ctx):
		return fmt.Errorf("calling tool %q of server %q: %w", name, s.config.ID, context.Canceled)
	case ctx.Err() != nil:
		return s.failure(name, Timeout, fmt.Sprintf("no answer within %s", rounded(waited)), again, err)
	case got.large:
		return s.failure(name, OutputLimit, fmt.Sprintf("the result has more than the %d bytes that one call may "+
			"return; %s",
			allowanceOf(ctx).most, AskForLess), false, err)
	case got.needed != nil:
		return got.needed.CallError(name)
	case got.statusDecides():
		return s.classifyStatus(name, got.status, again, err)
	case got.deep:
		return s.failure(name, InvalidOutput, fmt.Sprintf(
			"the server answered with JSON that is nested more than %d levels deep", maxLevels), false, err)
	case got.garbled:
		return s.failure(name, InvalidOutput, "the server answered with something that is not MCP", false, err)
	case got.refusal != nil && isUnknownResource(name, got.refusal.Code):
		return s.failure(name, UnknownTool, "the server has no such resource", false, err)
	case got.refusal != nil:
		return s.failure(name, ToolError, "the server refused the call: "+foreignText(got.refusal.Message), false, err)
	}
	return s.failure(name, TransientNetwork, "the connection to the server was lost", again, err)
}

// codeUnknownResource is the code for an unknown resource before MCP 2026-07-28, which has -32602.
const codeUnknownResource = -32002

// isUnknownResource reports whether a server has refused to read a resource because it has none with this URI.
func isUnknownResource(name string, code int64) bool {
	use, feature := catalog.SplitUse(name)
	kind, _ := catalog.SplitFeatureName(feature)
	return use == "" && kind == catalog.KindResource &&
		(code == codeUnknownResource || code == jsonrpc.CodeInvalidParams)
}

// statusDecides reports whether the HTTP status takes precedence over a JSON-RPC error
// in the same response.
func (a answer) statusDecides() bool {
	switch a.status {
	case 0:
		return false
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return a.refusal == nil
}

// classifyStatus returns the error for an HTTP status. After a 4xx the call was
// not carried out; after a 5xx it may have been (RFC 9110, section 15).
func (s *server) classifyStatus(name string, status int, again bool, err error) error {
	switch {
	case status == http.StatusTooManyRequests:
		return s.failure(name, RateLimit, "the server asks for fewer calls", true, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return s.failure(name, ToolError, fmt.Sprintf("the server refused Airlock's credentials (HTTP %d)", status),
			false, err)
	case status == http.StatusServiceUnavailable:
		return s.failure(name, TransientNetwork, "the server is not available now (HTTP 503)", true, err)
	case status == http.StatusNotFound || status == http.StatusRequestTimeout:
		return s.failure(name, TransientNetwork, fmt.Sprintf(
			"the server does not know the session any more (HTTP %d)", status), true, err)
	case status < http.StatusInternalServerError:
		return s.failure(name, ToolError, fmt.Sprintf("the server refused the call (HTTP %d)", status), false, err)
	}
	return s.failure(name, TransientNetwork, fmt.Sprintf("the server failed (HTTP %d)", status), again, err)
}

func (s *server) failure(name string, kind ErrorType, message string, retryable bool, cause error) *CallError {
	return &CallError{ServerID: s.config.ID, ToolName: name, Type: kind, Message: message, Retryable: retryable,
		cause: cause}
}

// harmless reports whether the tool's annotations declare it read-only or idempotent, or it
// is not a tool. This only decides about the word retryable.
func (s *server) harmless(name string) bool {
	if kind, _ := catalog.SplitFeatureName(name); kind != catalog.KindTool {
		return true
	}
	for _, tool := range s.describe().Tools {
		if tool.Name == name {
			a := tool.Annotations
			return a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.IdempotentHint != nil && *a.IdempotentHint
		}
	}
	return false
}

// foreignText makes a server's message fit for ours.
func foreignText(text string) string {
	return strings.TrimSpace(catalog.Visible(truncate.Characters(text, maxErrorMessage)))
}

// rounded makes a duration readable: 60s, 250ms.
func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
