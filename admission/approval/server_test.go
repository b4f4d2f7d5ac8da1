package approval_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Issue 31: a contained server that asks for a connection appears as a server, and not as the person of the call.
func TestAContainedServerIsNotAPerson(t *testing.T) {
	q := approval.Question{Asking: approval.Asking{Principal: "crm", CallerKind: string(caller.Contained)},
		Subject: approval.Subject{ServerID: "api.example.com:443", ToolName: "connect"}}
	if text := approval.Text(q); !strings.Contains(text, "of server   crm\n") || strings.Contains(text, "  for ") {
		t.Errorf("got\n%s", text)
	}
}
