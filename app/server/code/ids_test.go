package code

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A second request with the ID of a pending request is answered, but not with the ID of the first.
func TestAnIDThatIsInUse(t *testing.T) {
	s, runs := newServer(t)
	r, w := serve(t, s)
	answers := json.NewDecoder(r)
	next := func() (answer struct {
		ID     any
		Result map[string]any
		Error  struct{ Message string }
	}) {
		t.Helper()
		if err := answers.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	send(t, w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",`+
		`"capabilities":{},"clientInfo":{"name":"host","version":"1"}}}`)
	next()
	run := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code",` +
		`"arguments":{"language":"python","code":"wait"}}}`
	send(t, w, run)
	<-runs.waiting
	for _, again := range []string{`{"jsonrpc":"2.0","id":7,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":7.0,"method":"ping"}`, run} {
		send(t, w, again)
		if got := next(); got.ID != nil ||
			got.Error.Message != "the ID is that of another request that has no answer yet" {
			t.Errorf("%s: got %+v, want an error without an ID", again, got)
		}
	}
	send(t, w, `{"jsonrpc":"2.0","id":"7","method":"ping"}`) // a text is another ID
	if got := next(); got.ID != "7" || got.Result == nil {
		t.Errorf("got %+v, want the answer to \"7\"", got)
	}
	send(t, w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	<-runs.ended
	send(t, w, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	for got := next(); got.Result == nil; got = next() { // the cancelled one may be answered first
		if got.ID != 7.0 {
			t.Fatalf("got %+v, want an answer to 7", got)
		}
	}
}

// An ID that the SDK would change is refused over HTTP, too, and IDs that it would
// keep are not.
func TestIDsOverHTTP(t *testing.T) {
	url, _ := overHTTP(t)
	for id, refused := range map[string]bool{"1.5": true, "9007199254740993": true, "1e30": true,
		"-9007199254740991": false, "1e3": false, `"x"`: false} {
		body := `{"jsonrpc":"2.0","id":` + id +
			`,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"h","version":"1"}}}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(answer, []byte("53 bits")); got != refused || refused &&
			!bytes.Contains(answer, []byte(`"id":`+id)) {
			t.Errorf("%s: got %s", id, answer)
		}
	}
}
