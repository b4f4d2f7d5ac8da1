package code

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// No string and no size in any request ends the face or leaves a request without an
// answer (issue 24: a control character in a URI ended the process).
func TestHostileRequests(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-11-25"} {
		s, _ := newServer(t)
		out, in := serve(t, s)
		servertest.NewHost(t, out, in, version).Hostile(t)
	}
}

func FuzzHostileRequests(f *testing.F) {
	servertest.Fuzz(f, func(t testing.TB) (io.ReadCloser, io.WriteCloser) {
		s, _ := newServer(t)
		return serve(t, s)
	})
}

// An unknown resource has the error code of the negotiated revision, and its URI as JSON.
func TestUnknownResource(t *testing.T) {
	const uri = "airlock://runs/\x00\u202e/a"
	for version, code := range map[string]int64{"2024-11-05": -32002, "2025-11-25": -32002, "2026-07-28": -32602} {
		s, _ := newServer(t)
		_, err := connect(t, s, version, nil).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		var wire *jsonrpc.Error
		var data struct {
			URI string `json:"uri"`
		}
		if !errors.As(err, &wire) || wire.Code != code || json.Unmarshal(wire.Data, &data) != nil || data.URI != uri {
			t.Errorf("%s: got %v, want code %d with the URI", version, err, code)
		}
	}
}
