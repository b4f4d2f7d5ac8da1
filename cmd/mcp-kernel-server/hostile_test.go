package main

import (
	"testing"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// No string and no size in any request ends the program or leaves a request without an
// answer (issue 24: a control character in a URI ended the process).
func TestHostileRequests(t *testing.T) {
	servertest.Program(t, newWorld(t).program("--stdio"))
}
