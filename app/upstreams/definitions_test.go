package upstreams

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
)

const describedBy = "AIRLOCK_UPSTREAMS_TEST_DESCRIPTION"

// TestMain makes the test binary an MCP server whose tool is described by a file.
func TestMain(m *testing.M) {
	file := os.Getenv(describedBy)
	if file == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if json.Unmarshal(in.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"unknown method"}`
		switch request.Method {
		case "initialize":
			answer = fmt.Sprintf(
				`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"changing",`+
					`"version":"1"}}`, request.Params.ProtocolVersion)
		case "tools/list":
			text, _ := os.ReadFile(file)
			answer = fmt.Sprintf(
				`"result":{"tools":[{"name":"look","description":%q,"inputSchema":{"type":"object"}}]}`, text)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", request.ID, answer)
	}
	os.Exit(0)
}

// The snapshot in force has a tool as its server gives it: what changed without
// a word is found when the server is asked again, and withheld.
func TestCurrentFindsWhatChangedWithoutAWord(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("AIRLOCK_HOME", filepath.Join(dir, "home"))
	description := filepath.Join(dir, "description")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(description, "Looks at a thing.")
	write(filepath.Join(dir, "airlock.yaml"), fmt.Sprintf(
		"mcpServers: {changing: {command: %q, env: {%s: %q}}}\n", self, describedBy, description))
	c, err := config.Load(filepath.Join(dir, "airlock.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Open(t.Context(), c, Options{Version: "test", Logger: slog.New(slog.DiscardHandler),
		Notify: func(Notice) {}, Redactors: NewRedactors()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	if err := made.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	look := func(again bool) (catalog.Tool, error) {
		t.Helper()
		snapshot, err := made.Current(t.Context(), "changing", "look", again)
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Lookup("changing", "look")
	}
	before, err := look(true)
	if err != nil || !strings.Contains(before.Description, "Looks") {
		t.Fatalf("got %+v, %v, want the tool", before, err)
	}
	write(description, "Removes a thing.")
	if now, err := look(false); err != nil || now.Digest != before.Digest {
		t.Errorf("not asked again: got %v, %v, want what is known", now.Digest, err)
	}
	var withheld *catalog.WithheldError
	if _, err := look(true); !errors.As(err, &withheld) {
		t.Errorf("asked again: got %v, want it withheld", err)
	}
	if _, err := look(false); !errors.As(err, &withheld) {
		t.Errorf("afterwards: got %v, want it withheld", err)
	}
	write(description, "Looks at a thing.")
	if now, err := look(true); err != nil || now.Digest != before.Digest {
		t.Errorf("as it was: got %v, %v", now.Digest, err)
	}
}
