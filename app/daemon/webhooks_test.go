package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// hooked is a message that an endpoint got.
type hooked struct {
	Type string
	Data struct {
		ID, URL, Outcome string
	}
}

// Issue 31: a person follows the link of a message, signs in, and answers; the chat hears of the end.
func TestAQuestionReachesAChat(t *testing.T) {
	messages := make(chan hooked, 4)
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m hooked
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("got %v, signature %q", err, r.Header.Get("Webhook-Signature"))
		}
		messages <- m
		w.WriteHeader(http.StatusNoContent)
	}))
	defer chat.Close()
	s := serve(t, fmt.Sprintf("approvals: {webhooks: {chat: {url: %q, secret: %q}}}", chat.URL+"/hook",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), func(d *Daemon) { d.opts.URL = "http://unset.invalid" })
	q := approval.Question{ID: telemetry.NewID("apr"), Asked: time.Now(), Expires: time.Now().Add(time.Minute),
		Asking:  approval.Asking{Principal: "ann", CallerKind: "user", SessionID: "ses_1", RunID: "run_1"},
		Subject: approval.Subject{ServerID: "files", ToolName: "write", Arguments: json.RawMessage(`{"a": "hidden"}`)},
		Grounds: approval.Grounds{Risk: "write"}}
	token := s.token("ann", auth.ScopeApprove)
	verdict := make(chan approval.Verdict, 1)
	go func() {
		v, _ := s.daemon.opts.System.Approvals().Ask(t.Context(), q)
		verdict <- v
	}()
	asked := <-messages
	path, found := strings.CutPrefix(asked.Data.URL, "http://unset.invalid")
	if asked.Type != "approval.asked" || asked.Data.ID != q.ID || !found {
		t.Fatalf("got %+v", asked)
	}
	b := browser(t)
	_, code, _ := strings.Cut(path, "code=")
	status, body := page(t, b, s.url+"/ask", url.Values{"code": {code}})
	next := regexp.MustCompile(`name="next" value="([^"]+)"`).FindStringSubmatch(body)
	if status != http.StatusOK || next == nil || !strings.HasPrefix(next[1], "/ask?code=") {
		t.Fatalf("without a session: got %d %s", status, body)
	}
	if status, body = page(t, b, s.url+"/sign-in", url.Values{"token": {token}, "next": {next[1]}}); status !=
		http.StatusOK || !strings.Contains(body, "Open the question") {
		t.Fatalf("after the sign-in: got %d %s", status, body)
	}
	status, body = page(t, b, s.url+"/ask", url.Values{"code": {code}})
	fields := regexp.MustCompile(`name="(csrf|digest)" value="([^"]+)"`).FindAllStringSubmatch(body, -1)
	if status != http.StatusOK || !strings.Contains(body, "hidden") || len(fields) < 2 {
		t.Fatalf("the question: got %d %s", status, body)
	}
	form := url.Values{"answer": {"allow"}}
	for _, field := range fields {
		form.Set(field[1], field[2])
	}
	if status, body = page(t, b, s.url+"/questions/"+q.ID, form); status != http.StatusOK {
		t.Fatalf("answering: got %d %s", status, body)
	}
	if v := <-verdict; v.Answer != approval.Yes || v.By != "ann, console" {
		t.Errorf("got %+v", v)
	}
	if over := <-messages; over.Type != "approval.closed" || over.Data.URL != "" ||
		!strings.Contains(over.Data.Outcome, "approved by ann") {
		t.Errorf("got %+v, want the end", over)
	}
}
