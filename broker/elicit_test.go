package broker_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	servers "github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/policies"
)

// curious is a server that asks the person during each call, and repeats the answers.
type curious struct {
	questions []servers.Elicitation
	got       []servers.ElicitationAnswer
	refused   []error
}

func (c *curious) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"no person to ask"}]}`), nil
}

func (c *curious) CallFor(ctx context.Context, relay servers.Relay, serverID, _ string,
	_ json.RawMessage) (json.RawMessage, error) {
	said := ""
	servers.RecordTask(ctx, "task-7")
	for _, question := range c.questions {
		question.ServerID = serverID
		answer, err := relay.Elicit(ctx, question)
		if err != nil {
			c.refused = append(c.refused, err)
			continue
		}
		c.got = append(c.got, answer)
		said += string(answer.Content)
	}
	text, err := json.Marshal(said)
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`), err
}

var city = servers.Elicitation{Message: "Where to?",
	Schema: json.RawMessage(
		`{"type":"object","properties":{"city":{"type":"string"},"class":{"type":"string","enum":["second"]}},` +
			`"required":["city"]}`)}

// asking is a broker in front of a curious server.
func asking(t *testing.T, c *curious, verdict approval.Verdict, change func(*options)) (run *broker.RunCalls,
	people *counting, directory string) {
	t.Helper()
	directory, people = t.TempDir(), &counting{verdict: verdict}
	log, err := audit.Open(directory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	engine, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	opts := &options{broker.Options{Approver: people},
		admission.Rules{Policies: engine, Operator: policies.Operator{"files": {TrustAnnotations: true}},
			Elicitation: map[string]bool{"files": true}}}
	if change != nil {
		change(opts)
	}
	b, _ := opts.open(t, c, log)
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "files", Tools: tools()}})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, b, broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "ann", Kind: caller.Local,
		Session: "s1"}, TraceID: "t", CodeHash: "sha256:c", Code: "the code"}, snapshot, nil), people, directory
}

func records(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			text += string(raw)
		}
	}
	return text
}

func TestWhatAPersonTellsAServerGoesThereAlone(t *testing.T) {
	c := &curious{questions: []servers.Elicitation{city}}
	yes := approval.Verdict{Answer: approval.Yes, By: "ann, through a host",
		Content: secret.New(`{"city":"Llanfair PG","class":"second"}`)}
	run, people, directory := asking(t, c, yes, nil)
	answer := run.Call(t.Context(), call("read_file", `{"path":"a"}`))
	if !answer.OK || len(c.got) != 1 || c.got[0].Action != "accept" ||
		string(c.got[0].Content) != yes.Content.Reveal() {
		t.Fatalf("got %+v, and the server %+v %v", answer, c.got, c.refused)
	}
	if raw := string(answer.Raw); strings.Contains(raw, "Llanfair") || !strings.Contains(raw, "second") {
		t.Errorf("the code sees %s, want what was chosen and not what was typed", raw)
	}
	q := people.asked[0]
	if q.ServerID != "files" || q.Elicitation == nil || !q.Elicitation.NeedsValues || q.Code != "" ||
		!strings.Contains(string(q.Arguments), "Where to?") {
		t.Errorf("the person was asked %+v", q)
	}
	log := records(t, directory)
	for _, want := range []string{"the server asks the person", `city`, "the person's answer: accept",
		"ann, through a host", `"task_id":"task-7"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not have %q in it", want)
		}
	}
	if strings.Contains(log, "Llanfair") || strings.Contains(log, "Where to?") {
		t.Errorf("the log has what was said:\n%s", log)
	}
}

func TestAnswersOfAPerson(t *testing.T) {
	tests := []struct {
		name    string
		verdict approval.Verdict
		want    string // the action; empty: the server is refused
	}{
		{"no", approval.Verdict{}, "decline"},
		{"closed", approval.Verdict{Answer: approval.Dismissed}, "cancel"},
		{"not in time", approval.Verdict{Answer: approval.Expired}, "cancel"},
		{"no person", approval.Verdict{Answer: approval.Unreachable}, ""},
		{"an answer that is none", approval.Verdict{Answer: 99}, "decline"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &curious{questions: []servers.Elicitation{city}}
			run, _, _ := asking(t, c, test.verdict, nil)
			run.Call(t.Context(), call("read_file", `{"path":"a"}`))
			if test.want == "" {
				if len(c.got) != 0 || len(c.refused) != 1 {
					t.Errorf("got %+v, %v, want a refusal", c.got, c.refused)
				}
				return
			}
			if len(c.got) != 1 || c.got[0].Action != test.want || c.got[0].Content != nil {
				t.Errorf("got %+v, want %s without content", c.got, test.want)
			}
		})
	}
}

func TestQuestionsThatNoPersonIsAsked(t *testing.T) {
	forbids := func(o *options) {
		engine, err := policies.Load(policies.Default(),
			policies.File{Name: "p.cedar", Source: []byte(
				`@reason("quiet") forbid (principal, action, resource) when { context.elicits };`)})
		if err != nil {
			t.Fatal(err)
		}
		o.Policies = engine
	}
	many := make([]servers.Elicitation, 30)
	for i := range many {
		many[i] = city
	}
	tests := []struct {
		name      string
		questions []servers.Elicitation
		change    func(*options)
		asked     int
		log       string
	}{
		{"policy forbids them", []servers.Elicitation{city}, forbids, 0, "quiet"},
		{"the configuration does not name the server", []servers.Elicitation{city},
			func(o *options) { o.Elicitation = nil }, 0, ""},
		{"a form that cannot be shown", []servers.Elicitation{{Message: "x", Schema: json.RawMessage(`[]`)}}, nil, 0,
			"and may not: its form"},
		{"more than a person reads", many, nil, 10, "it has asked 10 times"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &curious{questions: test.questions}
			run, people, directory := asking(t, c, approval.Verdict{}, test.change)
			if answer := run.Call(t.Context(), call("read_file", `{"path":"a"}`)); !answer.OK {
				t.Errorf("got %+v: the call itself may happen", answer.Error)
			}
			if len(people.asked) != test.asked || len(c.got) != test.asked {
				t.Errorf("asked %d times, want %d", len(people.asked), test.asked)
			}
			if !strings.Contains(records(t, directory), test.log) {
				t.Errorf("the log does not say %q", test.log)
			}
		})
	}
}
