package main

import (
	"testing"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// No string and no size in any request ends the program or leaves a request without an
// answer (issue 24: a control character in a URI ended the process).
func TestHostileRequests(t *testing.T) {
	cmd := newWorld(t).program("--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	servertest.NewHost(t, out, in, "2025-11-25").Hostile(t)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of its input: got %v, want nil", err)
	}
}
