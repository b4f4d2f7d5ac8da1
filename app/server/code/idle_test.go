package code

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// A session without a request ends after 30 minutes, and one with requests does not.
func TestAnIdleSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t)
		handler := s.Handler(servertest.LocalUser("user:ann"), nil)
		send := func(session, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp",
				strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		session := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header().Get("Mcp-Session-Id")
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{20 * time.Minute, 200}, {20 * time.Minute, 200}, {31 * time.Minute, 404}} {
			time.Sleep(step.after)
			if got := send(session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); got.Code != step.want {
				t.Errorf("after %v: got %d, want %d", step.after, got.Code, step.want)
			}
		}
		s.Close()
	})
}
