package daemon

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// Issue 23: error responses below /.well-known have the documented form.
func TestNothingKnownHasTheFormOfEveryProblem(t *testing.T) {
	for method, want := range map[string]int{"GET": 404, "HEAD": 404, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		(&Daemon{}).wellKnown(w, httptest.NewRequest(method, "/.well-known/x", nil))
		var body struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != want || body.Error.Code == "" ||
			body.Error.Message == "" {
			t.Errorf("%s: got %d %s, %v", method, w.Code, w.Body, err)
		}
	}
}
