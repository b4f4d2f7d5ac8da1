package gateway

import (
	"io"
	"testing"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// No string and no size in any request ends the face or leaves a request without an
// answer (issue 24: a control character in a URI ended the process).
func TestHostileRequests(t *testing.T) {
	out, in := newLab(t).serve(t)
	servertest.NewHost(t, out, in, "2025-11-25").Hostile(t)
}

func FuzzHostileRequests(f *testing.F) {
	servertest.Fuzz(f, func(t testing.TB) (io.ReadCloser, io.WriteCloser) { return newLab(t).serve(t) })
}
