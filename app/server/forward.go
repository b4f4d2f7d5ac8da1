package server

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Nodes passes requests to other processes of a cluster: *cluster.Node, which documents the contract.
type Nodes interface {
	Forward(w http.ResponseWriter, r *http.Request, id string, failed func(gone bool)) bool
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

// forwardObject forwards a request without a session to the node that has the run, job or file that its message is
// about.
func (t *router) forwardObject(w http.ResponseWriter, r *http.Request, message []byte) bool {
	if t.nodes == nil {
		return false
	}
	return t.nodes.Forward(w, r, objectOf(message), func(bool) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, cmp.Or(idOf(message), "null"),
			jsonrpc.CodeInternalError, errNodeGone)
	})
}

// objectOf returns the ID of the object that a message is about, or an empty text. The code of a run may contain other
// IDs, so only these members count.
func objectOf(message []byte) string {
	var m struct {
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
		return ""
	}
	said := m.Params.Arguments
	for _, id := range []string{m.Params.TaskID, m.Params.RequestState, runOf(m.Params.URI), said.RunID, said.JobID} {
		if id != "" {
			return id
		}
	}
	return ""
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
