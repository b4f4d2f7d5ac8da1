package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

func TestFileOf(t *testing.T) {
	tests := []struct{ result, content, extension string }{
		{`{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"a": 1}}`, `{"a": 1}`, ".json"},
		{`{"content":[{"type":"text","text":"a,b\n1,\u00fc"}]}`, "a,b\n1,ü", ".txt"},
		{`{"content":[{"type":"text","text":" {\"a\": 1}"}],"structuredContent":null}`, ` {"a": 1}`, ".json"},
		{`{"content":[{"type":"text","text":"{a"}]}`, `{a`, ".txt"},
		{`{"content":[{"type":"text","text":""}]}`, ``, ".txt"},
		{`{"content":[{"type":"image","data":"AA=="}]}`, `[{"type":"image","data":"AA=="}]`, ".json"},
		{`{"content":[{"text":"a"},{"text":"b"}]}`, `[{"text":"a"},{"text":"b"}]`, ".json"},
		{`{"contents":[{"uri":"a:b","text":"# Guide"}]}`, `# Guide`, ".txt"},
		{`{"contents":[{"uri":"a:b","blob":"AA=="}]}`, `[{"uri":"a:b","blob":"AA=="}]`, ".json"},
		{`{"content":7}`, `7`, ".json"},
		{`{"_meta":{}}`, `{"_meta":{}}`, ".json"},
		{`{"con\u0074ent":[{"text":"a"}]}`, `{"con\u0074ent":[{"text":"a"}]}`, ".json"},
	}
	for _, test := range tests {
		if content, extension := fileOf(json.RawMessage(test.result)); string(content) != test.content ||
			extension != test.extension {
			t.Errorf("%s: got %s and %s, want %s and %s", test.result, content, extension, test.content, test.extension)
		}
	}
}

// A result that does not fit an answer is handed out in parts, once. A call without code leaves it in the session.
func TestLargeResultsOverTheSocket(t *testing.T) {
	large := strings.Repeat("x", 5<<20)
	var got strings.Builder
	play := func(_ context.Context, c *conn) error {
		var answer struct{ Error broker.Error }
		err := c.ask(methodCall, `{"server_id":"demo","name":"echo","arguments":{}}`, &answer)
		if answer.Error.File != "/workspace/session/demo.echo.txt" {
			t.Errorf("got %+v, want a file", answer.Error)
		}
		part := struct {
			Data    []byte
			More    bool
			Problem string
		}{More: true}
		for part.More && err == nil {
			part.More = false
			err = c.ask(methodResult, fmt.Sprintf(`{"file":%q}`, answer.Error.File), &part)
			got.Write(part.Data)
		}
		if err == nil {
			err = c.ask(methodResult, fmt.Sprintf(`{"file":%q}`, answer.Error.File), &part)
		}
		if part.Problem == "" {
			t.Error("a file was handed out twice")
		}
		return errors.Join(err, c.ask(methodFinish, done, &struct{}{}))
	}
	l := newLab(t, func(context.Context, string) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"%s"}]}`, large)), nil
	}, admission.Limits{ResultBytes: 1 << 20}, Options{}, func(ctx context.Context, c *conn) error {
		return play(ctx, c)
	})
	var err error
	if l.parts.Sessions, err = sessionfiles.Open(t.Context(), filepath.Join(t.TempDir(), "sessions"),
		sessionfiles.Limits{Bytes: 20 << 20, Files: 3}, 30<<20, (*cluster.Node)(nil)); err != nil {
		t.Fatal(err)
	}
	l.run(t, ofSession("ses_1"))
	if got.String() != large {
		t.Errorf("got %d bytes, want %d", got.Len(), len(large))
	}

	req, err := CallRequest(ToolCall{ServerID: "demo", Name: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	req.Caller = caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_2"}
	failure := l.run(t, req).Envelope.Result.Error
	if failure == nil || failure.Type != "OutputLimit" || !strings.Contains(failure.Message, "/session/demo.echo.txt") {
		t.Errorf("a call without code: got %+v", failure)
	}
	if files := l.parts.Sessions.Begin(req.Caller.Owner()); files.Files() != 1 {
		t.Errorf("after it: got %d files, want 1", files.Files())
	}
	l.EndSession("ses_2")
	if err := l.parts.Sessions.Close(); err != nil {
		t.Error(err)
	}
}

// Results are named by their tool, and numbered within a run.
func TestResultNames(t *testing.T) {
	r := &run{}
	for _, test := range []struct{ server, tool, want string }{
		{"crm", "list", "crm.list.txt"}, {"crm", "list", "crm.list-2.txt"},
		{"crm", "resource:a://ü/..", "crm.resource_a_____...txt"},
		{"..", "../../x", "_.._x.txt"}, {"", strings.Repeat("ü", 200), strings.Repeat("_", 99) + ".txt"},
	} {
		if got := r.resultName(broker.Call{ServerID: test.server, Name: test.tool}, ".txt"); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.server, test.tool, got, test.want)
		}
	}
}
