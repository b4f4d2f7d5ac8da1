package upstream

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The notifications of Relay.Notify.
const (
	NoticeProgress = "notifications/progress"
	NoticeMessage  = "notifications/message"
)

// askMark is the member of a question's _meta with which the tap marks its exchange. A value
// of the server is overwritten.
const askMark = "airlock/exchange"

// ownerLocked finds the exchange that a message of the server belongs to: that of
// the stream, or else the only call that is open. With more than one it could be
// any, and a question must not reach another person than the one behind the call.
func (t *tap) ownerLocked(stream jsonrpc.ID) *exchange {
	if stream.IsValid() {
		return t.waiting[stream]
	}
	var only *exchange
	for _, e := range t.waiting {
		if e.timeout == nil { // a list
			continue
		}
		if only != nil {
			return nil
		}
		only = e
	}
	return only
}

// byTokenLocked finds the exchange that progress is about.
func (t *tap) byTokenLocked(params json.RawMessage) *exchange {
	var fields struct {
		Token json.RawMessage `json:"progressToken"`
	}
	var token string
	if strictjson.UnmarshalOpen(params, &fields) != nil || strictjson.UnmarshalOpen(fields.Token, &token) != nil {
		return nil
	}
	for _, e := range t.waiting {
		if e.token == token {
			return e
		}
	}
	return nil
}

// relayed hands a notification of a request to its relay, and reports whether it did.
func (t *tap) relayed(request *jsonrpc.Request, stream jsonrpc.ID) bool {
	if request.IsCall() || request.Method != NoticeProgress && request.Method != NoticeMessage {
		return false
	}
	t.mu.Lock()
	t.heard = true
	owner := t.ownerLocked(stream)
	if request.Method == NoticeProgress {
		owner = t.byTokenLocked(request.Params)
	}
	t.mu.Unlock()
	if owner == nil || owner.relay == nil {
		return false
	}
	var params map[string]json.RawMessage
	if strictjson.UnmarshalOpen(request.Params, &params) != nil {
		return false
	}
	delete(params, "progressToken")
	raw, err := json.Marshal(params)
	if err != nil {
		return false
	}
	owner.relay.Notify(request.Method, raw)
	return true
}

// marked returns a question with the mark of its exchange in it, and everything
// else as it is.
func (t *tap) marked(request *jsonrpc.Request, stream jsonrpc.ID) *jsonrpc.Request {
	if request.Method != methodElicit || !request.IsCall() {
		return request
	}
	params, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if strictjson.UnmarshalOpen(request.Params, &params) != nil || params == nil {
		return request
	}
	if strictjson.UnmarshalOpen(params["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	delete(meta, askMark)
	t.mu.Lock()
	if owner := t.ownerLocked(stream); owner != nil && owner.relay != nil && len(t.asking) < maxAsked {
		t.marks++
		mark := strconv.Itoa(t.marks)
		t.asking[mark] = owner
		meta[askMark] = json.RawMessage(strconv.Quote(mark))
	}
	t.mu.Unlock()
	var err error
	if params["_meta"], err = json.Marshal(meta); err != nil {
		return request
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return request
	}
	copied := *request
	copied.Params = raw
	return &copied
}

// asker returns the exchange of a mark, once, or nil.
func (t *tap) asker(mark string) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.asking[mark]
	delete(t.asking, mark)
	return e
}

// passNotices forwards the notifications of a server.
func (s *server) passNotices(o *mcp.ClientOptions) {
	pass := func(method string, params any) {
		raw, err := json.Marshal(params)
		if err != nil {
			return
		}
		s.opts.OnNotice(s.config.ID, method, raw)
	}
	o.PromptListChangedHandler = func(_ context.Context, r *mcp.PromptListChangedRequest) {
		pass("notifications/prompts/list_changed", r.Params)
	}
	o.ResourceListChangedHandler = func(_ context.Context, r *mcp.ResourceListChangedRequest) {
		pass("notifications/resources/list_changed", r.Params)
	}
	o.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		pass("notifications/resources/updated", r.Params)
	}
	o.ElicitationCompleteHandler = func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
		pass("notifications/elicitation/complete", r.Params)
	}
	//lint:ignore SA1019 servers of these revisions log
	o.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) {
		pass(NoticeMessage, r.Params)
	}
}
