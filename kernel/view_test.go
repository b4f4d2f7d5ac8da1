package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/kernel"
)

// K-021, K-037, K-038, K-043: the numbers are those of the calls made.
func TestTheLogShowsWhatHappened(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	a, b := w.register(t, "ann", agents.Trusted), w.register(t, "bob", agents.Trusted)
	for i := range 5 {
		agent, policies := a, []string{"read_only"}
		if i == 4 {
			agent = b
		}
		query := "SELECT 1"
		if i%2 == 1 {
			query = "DROP TABLE t"
		}
		_, _ = w.Execute(ctx, local, request("database_query", agent, `{"query":"`+query+`"}`, policies...))
	}
	w.say(map[string]string{"gpt-4": `{"issues": []}`, "gemini-pro": `{"issues": []}`})
	if _, err := w.ReviewCode(ctx, local, kernel.Code{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.acts.Decide(ctx, admission.Act{Kind: admission.AnnouncedAction, Agent: a,
		Arguments: []byte(`{"type":"calculate","query":"2+2"}`),
		Context:   []byte(`{"conversation_id":"c","step_number":1}`)}); err != nil {
		t.Fatal(err)
	}
	if err := w.log.Append(ctx, audit.Record{Kind: audit.KindOutcome,
		Identity: audit.Identity{Principal: a, CallerKind: "agent"}, Act: audit.Act{ToolName: "q", ServerID: "db"},
		Effect: audit.Effect{Outcome: audit.OutcomeRefused}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		actor kernel.Actor
		query kernel.LogQuery
		want  string // returned, total, blocked, allowed
	}{
		"all":              {local, kernel.LogQuery{Limit: 20}, "8 8 3 5"},
		"two of all":       {local, kernel.LogQuery{Limit: 2, Type: "all"}, "2 8 3 5"},
		"blocked":          {local, kernel.LogQuery{Limit: 20, Type: "blocked"}, "3 3 3 5"},
		"allowed":          {local, kernel.LogQuery{Limit: 20, Type: "allowed"}, "5 5 3 5"},
		"reviews":          {local, kernel.LogQuery{Limit: 20, Type: "cmvk_review"}, "1 1 3 5"},
		"one agent":        {local, kernel.LogQuery{Limit: 20, Agent: a}, "6 6 3 3"},
		"its blocked ones": {local, kernel.LogQuery{Limit: 20, Agent: a, Type: "blocked"}, "3 3 3 3"},
		"the other":        {local, kernel.LogQuery{Limit: 20, Agent: b}, "1 1 0 1"},
		"none":             {local, kernel.LogQuery{Limit: 20, Agent: "none"}, "0 0 0 0"},
		"the future":       {local, kernel.LogQuery{Limit: 20, Since: time.Now().Add(time.Hour)}, "0 0 0 0"},
		"elsewhere's hour": {local, kernel.LogQuery{Limit: 20,
			Since: time.Now().Add(-time.Hour).In(time.FixedZone("", 9*3600))}, "8 8 3 5"},
		"its own":   {agentActor(b), kernel.LogQuery{Limit: 20}, "1 1 0 1"},
		"its owner": {bob, kernel.LogQuery{Limit: 20, Agent: b}, "1 1 0 1"},
	} {
		got, err := w.Log(ctx, c.actor, c.query)
		if has := fmt.Sprint(got.Returned, got.Total, got.Stats.Blocked, got.Stats.Allowed); err != nil ||
			has != c.want || !got.Complete || len(got.Logs) != got.Returned {
			t.Errorf("%s: %s, %+v, %v; want %s", name, has, got, err, c.want)
		}
	}
	got, err := w.Log(ctx, local, kernel.LogQuery{Limit: 3})
	if err != nil || got.Logs[0].Record < got.Logs[1].Record || got.Logs[0].Type != "blocked" ||
		got.Logs[1].Action != "calculate" || got.Logs[1].AgentID != a || got.Logs[2].Action != "cmvk_review" ||
		got.Logs[2].Caller != "ann" {
		t.Errorf("%+v, %v", got.Logs, err)
	}
	if older, err := w.Log(ctx, local, kernel.LogQuery{Limit: 20, Before: got.Logs[2].Record}); err != nil ||
		older.Returned != 5 || older.Total != 8 || older.Logs[0].Record >= got.Logs[2].Record {
		t.Errorf("%+v, %v", older, err)
	}
	for name, c := range map[string]struct {
		actor kernel.Actor
		query kernel.LogQuery
		want  string
	}{
		"no limit":         {local, kernel.LogQuery{}, "limit"},
		"too many":         {local, kernel.LogQuery{Limit: 1001}, "limit"},
		"type":             {local, kernel.LogQuery{Limit: 1, Type: "denied"}, "filter.type"},
		"without a scope":  {bob, kernel.LogQuery{Limit: 1}, "the scope audit"},
		"another's agent":  {bob, kernel.LogQuery{Limit: 1, Agent: a}, "is not registered"},
		"agent of another": {agentActor(b), kernel.LogQuery{Limit: 1, Agent: a}, "is not registered"},
	} {
		if _, err := w.Log(ctx, c.actor, c.query); !strings.Contains(refusal(t, err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
