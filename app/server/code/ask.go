package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Approvals is the source of questions to people: an approval.Desk.
type Approvals interface {
	// Register registers the channel for questions to the people of one session, until
	// the caller calls unregister. A later registration for the session replaces it.
	Register(sessionID string, asker approval.Asker) (unregister func())
}

// maxQuestion is the maximum length of a question for a host, in bytes. A host could cut a
// longer one, so Airlock shortens it and adds a note.
const maxQuestion = 16 << 10

// The choices for a call that needs approval.
const (
	choiceOnce = "approve this call"
	choiceRun  = "approve this tool for the whole run"
	choiceDeny = "deny"
)

// choices is the form for a call that needs approval.
const choices = `{"type": "object", "required": ["decision"], "properties": {"decision": {"type": "string",
	"title": "Decision", "enum": ["` + choiceOnce + `", "` + choiceRun + `", "` + choiceDeny + `"], "default": "` + choiceDeny + `"}}}`

// question converts a question to an elicitation of the host (MCP 2025-11-25, Elicitation, Form
// Mode). A form of a server is forwarded, with a message that names the server. A URL of a server
// is part of the message, so that hosts do not open it. The page of a sign-in is opened by hosts that open URLs.
func question(q approval.Question, opensURLs bool) *mcp.ElicitParams {
	asked := &mcp.ElicitParams{Mode: "form", Message: approval.Excerpt(q, maxQuestion),
		RequestedSchema: json.RawMessage(choices)}
	switch e := q.Elicitation; {
	case e == nil:
	case e.SignIn && opensURLs:
		return &mcp.ElicitParams{Mode: "url", Message: asked.Message, URL: e.URL, ElicitationID: q.ID}
	case e.Schema != nil:
		asked.RequestedSchema = e.Schema
	default:
		asked.RequestedSchema = json.RawMessage(agreement)
	}
	return asked
}

// The choices for an elicitation of a server without a form.
const (
	choiceAgree   = "yes: I agree, or have done it"
	choiceDecline = "no"
)

// agreement is the form for such an elicitation.
const agreement = `{"type": "object", "required": ["decision"], "properties": {"decision": {"type": "string",
	"title": "Decision", "enum": ["` + choiceAgree + `", "` + choiceDecline + `"], "default": "` + choiceDecline + `"}}}`

// given converts the answer of a person to a question.
func given(q approval.Question, res *mcp.ElicitResult, by string) approval.Verdict {
	v := approval.Verdict{By: by}
	switch e := q.Elicitation; {
	case e == nil:
		return verdict(res, by)
	case res.Action == "cancel":
		v.Answer = approval.Dismissed
	case res.Action != "accept":
	case e.Schema != nil:
		if content, err := json.Marshal(res.Content); err == nil {
			v.Answer, v.Content = approval.Yes, secret.New(string(content))
		}
	case res.Content["decision"] == choiceAgree, e.SignIn && res.Content == nil:
		v.Answer = approval.Yes
	}
	return v
}

// verdict converts the choice of a person. Only an explicit approval is a yes. Closing the form
// without a choice is Dismissed, not a denial.
func verdict(res *mcp.ElicitResult, by string) approval.Verdict {
	v := approval.Verdict{By: by}
	if res.Action == "cancel" {
		v.Answer = approval.Dismissed
	}
	if res.Action != "accept" {
		return v
	}
	switch res.Content["decision"] {
	case choiceOnce:
		v.Answer = approval.Yes
	case choiceRun:
		v.Answer, v.For.Reach = approval.Yes, approval.ThisRun
	}
	return v
}

// canAsk reports whether the host can show a form to a person. An empty elicitation capability
// means forms (MCP 2025-11-25, Elicitation, Capabilities).
func canAsk(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// opensURLs reports whether the host opens a URL that its person agrees to (MCP 2025-11-25, Elicitation, URL Mode).
func opensURLs(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && caps.Elicitation.URL != nil
}

// attend registers the host as the channel of its session until the session ends. It is for
// revisions in which a server can ask during a request.
func (s *Server) attend(c call) {
	s.Attend(c.request.Session, func() (unregister func()) {
		return s.approvals.Register(c.caller.Session, elicitor{c.request.Session, answerer(c), opensURLs(c.request)})
	})
}

// hostAsks reports whether the host forwards questions to its people. The host of an agent is
// the agent itself, which must not approve its own calls.
func (s *Server) hostAsks(kind caller.Kind, req *mcp.CallToolRequest) bool {
	return s.parking != nil && kind != caller.Agent && canAsk(req)
}

// answerer returns the names of the caller and the host that answer questions.
func answerer(c call) string {
	host := "an unnamed host"
	if info := c.request.ClientInfo(); info != nil && info.Name != "" {
		host = visible.Clip(info.Name, 60)
	}
	return c.caller.Name() + ", through " + host
}

// elicitor asks through a session of a revision in which a server can ask during a request:
// 2025-06-18 and 2025-11-25.
type elicitor struct {
	session   *mcp.ServerSession
	by        string
	opensURLs bool
}

var _ approval.Asker = elicitor{}

// Ask shows the question in the host and waits for the person.
func (e elicitor) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	res, err := e.session.Elicit(ctx, question(q, e.opensURLs))
	if err != nil {
		return approval.Verdict{}, fmt.Errorf("asking through the host: %w", err)
	}
	return given(q, res, e.by), nil
}

// TooLate notifies the host that the answer of its person does not count.
func (e elicitor) TooLate(ctx context.Context, q approval.Question, won approval.Verdict) {
	// An error is ignored: the host still gets the outcome of the call.
	//lint:ignore SA1019 in these revisions logging is how a host hears of what it did not ask for
	_ = e.session.Log(ctx, &mcp.LoggingMessageParams{ //lint:ignore SA1019 as above
		Level: "warning", Logger: "airlock", Data: fmt.Sprintf(
			"the answer to %s came too late: the question was answered already: %v", q.ID, won),
	})
}

var _ approval.Informer = elicitor{}

// errNotParked is the error of a question for which no request is open.
var errNotParked = errors.New("no request of the host waits for this run")
