package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/webhook"
	"github.com/airlock-mcp/airlock/internal/secret"
)

const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// The example of Standard Webhooks.
func TestSignature(t *testing.T) {
	got, err := webhook.Sign(secret.New(key), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
		[]byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, bad := range []string{"", "whsec_", "whsec_c2hvcnQ=", strings.TrimPrefix(key, "whsec_"), "whsec_???"} {
		if _, err := webhook.Key(secret.New(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// received is a message with the header that an endpoint got.
type received struct {
	header http.Header
	body   string
}

// chat is an endpoint. It answers with the statuses, and then with 204.
type chat struct {
	mu       sync.Mutex // guards the fields below
	statuses []int
	got      []received
}

func (c *chat) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, received{r.Header, string(body)})
	status := http.StatusNoContent
	if len(c.statuses) > 0 {
		status, c.statuses = c.statuses[0], c.statuses[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused by " + r.URL.String())
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

// types returns the types of the messages so far.
func (c *chat) types(t *testing.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, one := range c.got {
		var m struct{ Type string }
		if err := json.Unmarshal([]byte(one.body), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.TrimPrefix(m.Type, "approval."))
	}
	return strings.Join(list, " ")
}

func asked(id string) approval.Event {
	return approval.Event{Open: true, Question: approval.Question{ID: id, Expires: time.Now().Add(time.Hour),
		Asking:  approval.Asking{Principal: "ann", RunID: "run_1"},
		Subject: approval.Subject{ServerID: "files", ToolName: "write", Arguments: json.RawMessage(`{"a": "hidden"}`)},
		Grounds: approval.Grounds{Risk: "write", Approve: []string{"owner"}}}}
}

// open returns a sender to one endpoint.
func open(t *testing.T, c *chat, awake func(time.Time) time.Time) *webhook.Sender {
	t.Helper()
	if awake == nil {
		awake = func(t time.Time) time.Time { return t }
	}
	links := 0
	s := webhook.New(t.Context(), webhook.Options{
		Endpoints: func(context.Context) ([]webhook.Endpoint, error) {
			return []webhook.Endpoint{{URL: "https://chat.example/hook?key=private", Secret: secret.New(key)}}, nil
		},
		Link: func(id string) string {
			links++
			return fmt.Sprintf("https://airlock.example/ask/%s-%d", id, links)
		},
		Awake: awake, Logger: slog.New(slog.DiscardHandler), Client: &http.Client{Transport: c},
	})
	return s
}

// Issue 31: each message is signed, has no arguments, and keeps its ID when it is sent again. The end of a question is
// sent after its beginning.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chat{statuses: []int{500, 0, 302}}
		s := open(t, c, nil)
		defer s.Close()
		e := asked("apr_1")
		s.Note(e)
		time.Sleep(time.Minute)
		if got := c.types(t); got != "asked asked asked asked" {
			t.Fatalf("got %q, want four attempts", got)
		}
		e.Open, e.Escalated = true, "oncall"
		s.Note(e)
		synctest.Wait()
		e.Open, e.Escalated, e.Outcome = false, "", "approved by ann"
		s.Note(e)
		synctest.Wait()
		if got := c.types(t); got != "asked asked asked asked escalated closed" {
			t.Fatalf("got %q", got)
		}
		ids := map[string]int{}
		for i, one := range c.got {
			id := one.header.Get("Webhook-Id")
			ids[id]++
			want, err := webhook.Sign(secret.New(key), id, one.header.Get("Webhook-Timestamp"), []byte(one.body))
			if err != nil || one.header.Get("Webhook-Signature") != want {
				t.Errorf("message %d has the signature %q, want %q", i, one.header.Get("Webhook-Signature"), want)
			}
			if strings.Contains(one.body, "hidden") {
				t.Errorf("message %d has the arguments: %s", i, one.body)
			}
			if hasLink := strings.Contains(one.body, `"url":"https://airlock.example/ask/apr_1-`); hasLink == (i == 5) {
				t.Errorf("message %d has a link: %t: %s", i, hasLink, one.body)
			}
		}
		if len(ids) != 3 {
			t.Errorf("got %d IDs, want one for each message", len(ids))
		}
	})
}

// A question that is closed before its endpoint could be reached, and in quiet hours, has no messages.
func TestNoMessages(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []int
		awake    func(time.Time) time.Time
		after    time.Duration
		want     string
	}{
		"closed while it is repeated": {[]int{500, 500, 500}, nil, 7 * time.Second, "asked asked"},
		"gone":                        {[]int{410}, nil, time.Hour, "asked"},
		"closed in quiet hours": {nil, func(t time.Time) time.Time { return t.Add(8 * time.Hour) }, time.Hour,
			""},
		"closed after quiet hours": {nil, func(t time.Time) time.Time { return t.Add(8 * time.Hour) }, 9 * time.Hour,
			"asked closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chat{statuses: test.statuses}
				s := open(t, c, test.awake)
				defer s.Close()
				e := asked("apr_1")
				s.Note(e)
				time.Sleep(test.after)
				e.Open = false
				s.Note(e)
				time.Sleep(time.Hour)
				if got := c.types(t); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// Close ends attempts, and questions after it are ignored.
func TestClose(t *testing.T) {
	stalled := httptest.NewServer(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after that
			<-r.Context().Done()
		}))
	defer stalled.Close()
	s := webhook.New(t.Context(), webhook.Options{
		Endpoints: func(context.Context) ([]webhook.Endpoint, error) {
			return []webhook.Endpoint{{URL: stalled.URL, Secret: secret.New(key)}}, nil
		},
		Link:  func(string) string { return "" },
		Awake: func(t time.Time) time.Time { return t }, Logger: slog.New(slog.DiscardHandler),
	})
	for n := range 100 {
		s.Note(asked(fmt.Sprint("apr_", n)))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.Note(asked("apr_later"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
