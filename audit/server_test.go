package audit_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Issue 31: the line of a connection of a contained server has the name of the server.
func TestTheLineOfAContainedServer(t *testing.T) {
	var line strings.Builder
	r := audit.Record{Kind: audit.KindIntent, Identity: audit.Identity{Principal: "crm",
		CallerKind: string(caller.Contained)}}
	if err := audit.WriteLine(&line, r); err != nil || !strings.Contains(line.String(), "  server=crm") {
		t.Errorf("got %q and %v", line.String(), err)
	}
}
