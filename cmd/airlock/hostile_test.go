package main

import (
	"testing"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// No string and no size in any request ends airlock mcp or leaves a request without an answer, on each
// of its faces (issue 24).
func TestHostileRequests(t *testing.T) {
	i := newInstallation(t, "", "python", "verify")
	for _, face := range []string{"code", "gateway"} {
		t.Run(face, func(t *testing.T) {
			servertest.Program(t, i.command("mcp", "--face", face, "--config", i.file))
		})
	}
}
