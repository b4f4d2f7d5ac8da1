package passthrough

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// relay is the client of one request, to whom the server talks through Airlock's
// upstream client.
type relay struct {
	session *mcp.ServerSession
	token   any // of the progress that the client wants; nil for none
	// within calls with the context of the request, by which the SDK finds its stream.
	within func(func(context.Context))
}

// relayTo returns a relay to the client of the request that ctx is of.
func relayTo(ctx context.Context, session *mcp.ServerSession, token any) *relay {
	return &relay{session: session, token: token, within: func(do func(context.Context)) { do(ctx) }}
}

var _ upstream.Relay = (*relay)(nil)

// Elicit implements upstream.Relay.
func (r *relay) Elicit(ctx context.Context, e upstream.Elicitation) (upstream.ElicitationAnswer, error) {
	params := &mcp.ElicitParams{Message: e.Message, URL: e.URL, ElicitationID: e.ID, Mode: "form"}
	if e.URL != "" {
		params.Mode = "url"
	}
	if e.Schema != nil {
		params.RequestedSchema = e.Schema
	}
	given, err := r.session.Elicit(ctx, params)
	if err != nil {
		return upstream.ElicitationAnswer{}, err
	}
	answer := upstream.ElicitationAnswer{Action: given.Action}
	if given.Content != nil {
		answer.Content, err = json.Marshal(given.Content)
	}
	return answer, err
}

// Notify implements upstream.Relay. Notifications for a closed client are dropped.
func (r *relay) LogLevel() string { return "" } // passLogLevel sets it

func (r *relay) Notify(method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if r.token != nil && json.Unmarshal(params, &p) == nil {
			p.ProgressToken = r.token
			r.within(func(ctx context.Context) { _ = r.session.NotifyProgress(ctx, &p) })
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams //lint:ignore SA1019 the suite has servers log
		if json.Unmarshal(params, &p) == nil {
			r.within(func(ctx context.Context) { _ = r.session.Log(ctx, &p) }) //lint:ignore SA1019 as above
		}
	}
}
