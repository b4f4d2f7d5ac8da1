package upstreams

import (
	"testing"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

func TestHintsForMissingServers(t *testing.T) {
	for _, test := range []struct {
		command string
		reason  error
		want    string
	}{
		{"", &upstream.SignInError{Command: "airlock login x"},
			"run `airlock login x`; its tools are here as soon as that is done"},
		{"", &upstream.SignInError{}, "check mcpServers.x.url and its headers"},
		{"", upstream.ErrUnauthorized, "write its credentials under mcpServers.x.headers"},
		{"", upstream.ErrUnreachable, "start the server, or correct mcpServers.x.url"},
		{"", upstream.ErrNoAnswer, "mcpServers.x.startTimeout gives it more time"},
		{"", upstream.ErrNotMCP, "check mcpServers.x.url and its headers"},
		{"", nil, "check mcpServers.x.url and its headers"},
		{"node", upstream.ErrNoAnswer, "mcpServers.x.startTimeout gives it more time"},
		{"node", upstream.ErrExited, "run the command of mcpServers.x by hand to see what it says"},
		{"node", upstream.ErrNoDirectory, "correct mcpServers.x.cwd"},
		{"/no/such/npx", upstream.ErrCommandNotFound, `install it, or correct its path "/no/such/npx"`},
		{"uvx-that-is-not-there", upstream.ErrCommandNotFound, "install it, or write its full path as `command`"},
		{"npx", upstream.ErrCommandNotFound, "install Node.js 20 or newer: apt-get install nodejs npm"},
		{"/srv/run", upstream.ErrNotStarted, "run the command of mcpServers.x by hand to see what it says"},
		{"node", nil, "run the command of mcpServers.x by hand to see what it says"},
	} {
		if got := missingHint("x", test.command, test.reason); got != test.want {
			t.Errorf("%q, %v: got %q, want %q", test.command, test.reason, got, test.want)
		}
	}
}
