package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/broker/oauth"
)

// Other users of this machine can read the arguments of processes. The arguments of xdg-open
// contain only the address of the start page, neither state nor challenge (issue 23).
func TestTheBrowserIsStartedWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" > " + filepath.Join(dir, "arguments") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	var stderr bytes.Buffer
	p := &visitor{Streams: &verb.Streams{Err: &stderr}, serverID: "notes", browses: true}
	i := oauth.Invitation{
		Start:   "http://127.0.0.1:4711/start/n",
		Address: "https://login.example/authorize?state=SECRET&code_challenge=CHALLENGE",
		Origin:  "https://login.example", Issuer: "https://claimed.example", Resource: "https://mcp.example/mcp",
	}
	if err := p.Invite(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	arguments, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(arguments)); len(got) != 2 || got[1] != i.Start {
		t.Errorf("xdg-open got %q, want the address of the start page", got)
	}
	if said := stderr.String(); strings.Contains(said, "SECRET") ||
		!strings.Contains(said, "at      https://login.example\n") ||
		!strings.Contains(said, "issuer  https://claimed.example\n") {
		t.Errorf("the person is shown %q", said)
	}
	p.Show(oauth.SignedIn{Account: "ada@example.com\x1b[2J"})
	if said := stderr.String(); !strings.Contains(said, "Signed in as ada@example.com") ||
		strings.Contains(said, "\x1b") {
		t.Errorf("the person is shown %q", said)
	}
}
