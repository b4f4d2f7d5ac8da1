package code

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
)

// attach executes the run "files".
func (f *fakeRuns) attach(req orchestrator.Request) (*orchestrator.Outcome, error) {
	var chart bytes.Buffer
	if err := png.Encode(&chart, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		return nil, err
	}
	draft := f.files.Begin(req.ID, req.Caller.Owner(), attachment.DefaultLimits)
	outcome := outcomeOf(req.ID, orchestrator.Result{OK: true, Data: json.RawMessage(`"the beginning"`)})
	outcome.Printed = orchestrator.Printed{}
	for _, file := range []struct {
		name, mime string
		content    []byte
	}{{"chart a+b.png", "", chart.Bytes()}, {"rows.csv", "text/csv", []byte("a,b\n1,2\n")},
		{"raw.bin", "", []byte("\x00\x01")}} {
		kept, err := draft.Add(attachment.Inspect(file.content, file.mime, file.name), file.name)
		if err != nil {
			return nil, err
		}
		outcome.Envelope.Attachments = append(outcome.Envelope.Attachments, orchestrator.Attached{
			Name: kept.Name, MIME: kept.MIME, Kind: string(kept.Kind), Bytes: kept.Bytes,
			URI: attachment.URI(req.ID, kept.Name),
		})
	}
	result, err := draft.AddResult([]byte(`"the whole result"`))
	outcome.Envelope.ResultFile = &orchestrator.ResultFile{URI: attachment.URI(req.ID, result.Name),
		Bytes: result.Bytes}
	return outcome, err
}

// newFileServer returns a server whose runs attach files.
func newFileServer(t *testing.T) *Server {
	t.Helper()
	store, err := attachment.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := newFakeRuns()
	runs.files = store
	go func() { // the ends of sessions are not awaited here
		for range runs.left {
		}
	}()
	s, err := New(newFakeTools(t), runs, Options{Version: "test", Principal: "user:ann", Files: store})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// In every revision a run's image is shown, and its other files can be fetched.
func TestAnswersShowWhatRunsAttach(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := connect(t, newFileServer(t), version, nil)
			res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "files"})
			var kinds []string
			uris := map[string]string{}
			for _, content := range res.Content {
				switch content := content.(type) {
				case *mcp.ImageContent:
					kinds = append(kinds, "image")
					if _, err := png.Decode(bytes.NewReader(content.Data)); err != nil ||
						content.MIMEType != "image/png" {
						t.Errorf("the image: %s, %v", content.MIMEType, err)
					}
				case *mcp.ResourceLink:
					kinds = append(kinds, "link")
					uris[content.Name] = content.URI
				case *mcp.TextContent:
					kinds = append(kinds, "text")
				}
			}
			want := "[text image link link text link text]"
			if version < withLinks {
				want = "[text image text text text text text]"
			}
			if got := fmt.Sprint(kinds); got != want {
				t.Errorf("got content %s, want %s", got, want)
			}
			var text strings.Builder
			for _, content := range res.Content {
				if block, ok := content.(*mcp.TextContent); ok {
					text.WriteString(block.Text + "\n")
				}
			}
			if said := text.String(); !strings.Contains(
				said, "[preview of a result of 18 bytes; the whole: airlock://runs/") ||
				strings.Count(said, "run_id") != 1 {
				t.Errorf("got %q", said)
			}
			answer := res.StructuredContent.(map[string]any)
			for _, f := range answer["attachments"].([]any) {
				uris[f.(map[string]any)["name"].(string)] = f.(map[string]any)["uri"].(string)
			}
			uris["result.json"] = answer["result_file"].(map[string]any)["uri"].(string)
			for name, want := range map[string]string{"rows.csv": "a,b\n1,2\n", "result.json": `"the whole result"`} {
				read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uris[name]})
				if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != want {
					t.Errorf("%s: got %+v and %v", name, read, err)
				}
			}
			if read, err := session.ReadResource(t.Context(),
				&mcp.ReadResourceParams{URI: uris["chart a+b.png"]}); err != nil ||
				read.Contents[0].MIMEType != "image/png" || len(read.Contents[0].Blob) == 0 {
				t.Errorf("the image: got %+v and %v", read, err)
			}
			list, err := session.ListResources(t.Context(), nil)
			if err != nil || len(list.Resources) != 4 || list.CacheScope == "public" {
				t.Errorf("got %+v and %v, want four private files", list, err)
			}
			again := callTool(t, session, "get_run", map[string]any{"run_id": runIDOf(res)})
			if got := len(again.Content); got != len(res.Content) {
				t.Errorf("get_run: got %d contents, want the %d of run_code", got, len(res.Content))
			}
		})
	}
}

// A file can be read by the owner of its run. For other callers it is not found.
func TestResourcesBelongToTheirOwner(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := newFileServer(t)
			everyone := parties(t, s, version, nil)
			uris := make([]string, len(everyone))
			for i, p := range everyone {
				res := callTool(t, p.session, "run_code", map[string]any{"language": "python", "code": "files"})
				uris[i] = attachment.URI(runIDOf(res), "rows.csv")
			}
			for i, reader := range everyone {
				for j, uri := range uris {
					_, err := reader.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
					var refused *jsonrpc.Error
					switch {
					case i == j && err != nil:
						t.Errorf("%s cannot read its own file: %v", reader.name, err)
					case i != j && (!errors.As(err, &refused) || refused.Message != "Resource not found"):
						t.Errorf("%s reads a file of %s: got %v", reader.name, everyone[j].name, err)
					}
				}
				list, err := reader.session.ListResources(t.Context(), nil)
				if err != nil || len(list.Resources) != 4 {
					t.Errorf("%s: got %d files and %v, want its own 4", reader.name, len(list.Resources), err)
				}
			}
		})
	}
}

func TestResourcesThatDoNotExist(t *testing.T) {
	s := newFileServer(t)
	session := connect(t, s, "2025-11-25", nil)
	id := runIDOf(callTool(t, session, "run_code", map[string]any{"language": "python", "code": "files"}))
	for _, uri := range []string{
		"airlock://runs/" + id + "/nope.csv", "airlock://runs/" + id + "/", "airlock://runs/" + id + "/..%2Findex.age",
		"airlock://runs/" + id + "/index.age",
		"airlock://runs/run_0/rows.csv", "airlock://runs/..%2F..%2Fkeys/attachments.key", "file:///etc/passwd",
		"airlock://runs/" + id + "/%00", "",
	} {
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%q: got a file, want an error", uri)
		}
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 ||
		templates.ResourceTemplates[0].URITemplate != attachment.Template {
		t.Errorf("got %+v and %v, want the one template", templates, err)
	}
}

// Files are not served to unknown callers.
func TestResourcesNeedACaller(t *testing.T) {
	web := httptest.NewServer(newFileServer(t).Handler(byToken, nil))
	defer web.Close()
	res, err := http.Post(web.URL, "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("got status %d, want %d", res.StatusCode, http.StatusUnauthorized)
	}
}
