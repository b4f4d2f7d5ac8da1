package server

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Nodes passes requests to other processes of a cluster: *cluster.Node, which documents the contract.
type Nodes interface {
	Forward(w http.ResponseWriter, r *http.Request, id string, failed func(gone bool)) bool
	ForwardNew(w http.ResponseWriter, r *http.Request, session string, failed func()) bool
	Leaving() bool
}

// SessionIDs returns the function with which the SDK makes the IDs of sessions. mark changes an ID so that it names
// this process. If it is nil, the IDs are those of the SDK.
func SessionIDs(mark func(id string) string) func() string {
	if mark == nil {
		return nil
	}
	return func() string { return mark(rand.Text() + rand.Text()) }
}

// errNodeGone is the answer to a request for an object of a node that does not answer.
const errNodeGone = "the node of the cluster that has this does not answer: send the request again in a moment"

// errNodeLost is the answer to a request that a node may have carried out.
const errNodeLost = "the node of the cluster that began this ended the connection: look at what it did before you " +
	"send it again"

// forwardSession forwards a request of a session to the node that has it. If that node has ended, it returns false, so
// that the session is unknown and the client opens another (MCP 2025-11-25, Session Management).
func (t *router) forwardSession(w http.ResponseWriter, r *http.Request, id string) bool {
	if t.nodes == nil {
		return false
	}
	ended := false
	return t.nodes.Forward(w, r, id, func(gone bool) {
		if ended = gone; !gone {
			w.Header().Set("Retry-After", "1")
			problem.Write(w, http.StatusServiceUnavailable, "unavailable", errNodeGone)
		}
	}) && !ended
}

// forwardMessage forwards a request without a session: to the node that has the run, job or file that its message is
// about, or to one that should begin what it asks for.
func (t *router) forwardMessage(w http.ResponseWriter, r *http.Request, message []byte, about subject) bool {
	if t.nodes == nil || r.Header.Get("Mcp-Session-Id") != "" {
		return false
	}
	fail := func(text string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, cmp.Or(idOf(message), "null"),
			jsonrpc.CodeInternalError, text)
	}
	if about.object != "" {
		isLost := false // then this node may have a copy of the file
		return t.nodes.Forward(w, r, about.object, func(gone bool) {
			if isLost = gone && about.method == methodRead; !isLost {
				fail(errNodeGone)
			}
		}) && !isLost
	}
	if about.method != methodInitialize && about.method != methodCall {
		return false
	}
	session := ""
	if about.method == methodCall && t.callers.shared {
		session = t.callers.standalone(provedBy(r))
	}
	forwarded := t.nodes.ForwardNew(w, r, session, func() { fail(errNodeLost) })
	r.Body = io.NopCloser(bytes.NewReader(message)) // the attempt may have read it
	return forwarded
}

// isMoving reports whether the session of a request should be opened again at another node, because this one is ending:
// the request calls a tool, and is the only one of the session that waits for an answer.
func (t *router) isMoving(about subject, waiting int64) bool {
	return about.method == methodCall && about.object == "" && waiting == 1 && t.nodes != nil && t.nodes.Leaving()
}

const (
	methodInitialize = "initialize"
	methodCall       = "tools/call"
	methodRead       = "resources/read"
)

// subject is what a message asks for.
type subject struct {
	method string
	object string // the ID of what a node has: a run, a job, a task or a file; may be empty
}

// subjectOf returns the subject of a message. The code of a run may contain other IDs, so only these members count.
func subjectOf(message []byte) subject {
	var m struct {
		Method string `json:"method"`
		Params struct {
			TaskID       string `json:"taskId"`
			RequestState string `json:"requestState"`
			URI          string `json:"uri"`
			Arguments    struct {
				RunID string `json:"run_id"`
				JobID string `json:"job_id"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if strictjson.UnmarshalOpen(message, &m) != nil {
		return subject{}
	}
	said := m.Params.Arguments
	object := cmp.Or(m.Params.TaskID, m.Params.RequestState, runOf(m.Params.URI), said.RunID, said.JobID)
	return subject{m.Method, object}
}

// runOf returns the run in the URI of an attached file.
func runOf(uri string) string {
	for part := range strings.SplitSeq(uri, "/") {
		if strings.HasPrefix(part, "run_") {
			return part
		}
	}
	return ""
}
