package system

import "testing"

func TestHintsForMissingServers(t *testing.T) {
	for _, test := range []struct{ command, problem, want string }{
		{"", `"https://x" wants other credentials (HTTP 401)`, "write its credentials under mcpServers.x.headers"},
		{"", `"http://x" could not be reached: "connect: connection refused"`,
			"start the server, or correct mcpServers.x.url"},
		{"", `"http://x" did not answer within 30s`, "mcpServers.x.startTimeout gives it more time"},
		{"", `"http://x" answered with a web page, not as an MCP server`, "check mcpServers.x.url and its headers"},
		{"node", "it did not answer within 30s", "mcpServers.x.startTimeout gives it more time"},
		{"node", `it exited with status 1 before it was ready; it said "sh: 1: foo: not found"`,
			"run the command of mcpServers.x by hand to see what it says"},
		{"node", `its working directory "/x" does not exist`, "correct mcpServers.x.cwd"},
		{"/no/such/npx", `the command ".../npx" was not found`, `install it, or correct its path "/no/such/npx"`},
		{"uvx-that-is-not-there", `the command "uvx-that-is-not-there" was not found`,
			"install it, or write its full path as `command`"},
		{"/srv/run", `the command ".../run" cannot run: its first line names ".../python9", which was not found`,
			"run the command of mcpServers.x by hand to see what it says"},
	} {
		if got := missingHint("x", test.command, test.problem); got != test.want {
			t.Errorf("%s, %s: got %q, want %q", test.command, test.problem, got, test.want)
		}
	}
}
