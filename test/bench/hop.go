package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// fillTime is how long nodes that have started may fill their pools before they are measured.
const fillTime = 15 * time.Second

// measureHops compares requests at the node that has a session with those at another one, and a node of a cluster with
// a single one.
func measureHops(ctx context.Context, f *fleet) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	nodes, err := f.nodes(ctx, nil, &undo, "a", "b")
	if err != nil {
		return err
	}
	single, err := f.single(nil, &undo)
	if err != nil {
		return err
	}
	token, err := single.token(ctx, "caller-0")
	if err != nil {
		return err
	}
	if err := single.start(ctx, &undo); err != nil {
		return err
	}
	session, err := nodes[0].session(ctx, f.tokens[0])
	if err != nil {
		return err
	}
	proxied, err := nodes[0].proxied(ctx, &undo)
	if err != nil {
		return err
	}
	var ways []way
	for name, n := range map[string]*serving{"owner": nodes[0], "other": nodes[1], "proxy": proxied} {
		ways = append(ways, way{name: name, take: func(ctx context.Context) (sample, error) {
			return timed(func() error {
				status, err := n.ping(ctx, session)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("a ping: HTTP %d", status)
				}
				return err
			})
		}})
	}
	for name, on := range map[string]struct {
		node  *serving
		token string
	}{"PostgreSQL": {nodes[0], f.tokens[0]}, "SQLite": {single, token}} {
		a, err := on.node.register(ctx, on.token)
		if err != nil {
			return err
		}
		ways = append(ways, way{name: name, take: func(ctx context.Context) (sample, error) {
			return timed(func() error { return a.act(ctx) })
		}})
	}
	if err := rest(ctx, fillTime); err != nil {
		return err
	}
	taken, err := inTurn(ctx, 10*f.rounds, 0, ways...)
	if err != nil {
		return err
	}
	f.table.add(newRow("a request of a session at its node", "ms", taken["owner"]),
		newRow("the same through a reverse proxy of Go, to its node", "ms", taken["proxy"]).adds(taken["owner"],
			"at its node"),
		newRow("the same at another node", "ms", taken["other"]).aims("≤ +0.5").adds(taken["owner"], "at its node"),
		newRow("verify_action over HTTP, durable in SQLite", "ms", taken["SQLite"]),
		newRow("the same, durable in PostgreSQL", "ms", taken["PostgreSQL"]).times(taken["SQLite"], "SQLite"))
	return f.nested(ctx, map[string]*serving{"cluster": nodes[0], "single": single},
		map[string]string{"cluster": f.tokens[0], "single": token}, &undo)
}

// nested makes tool calls from inside sandboxes of a node of the cluster, in turn with a single node.
func (f *fleet) nested(ctx context.Context, at map[string]*serving, tokens map[string]string,
	undo *cleanup.Stack) error {
	var ways []way
	for name, n := range at {
		face, err := n.open(ctx, tokens[name], undo)
		if err != nil {
			return err
		}
		for _, lang := range languages() {
			ways = append(ways, way{name: name + lang.id, take: func(ctx context.Context) (sample, error) {
				var took sample
				return took, face.run(ctx, lang, callingProgram(lang, serverID(0)), &took)
			}})
		}
	}
	taken, err := inTurn(ctx, max(1, f.rounds/2), roundPause, ways...)
	if err != nil {
		return err
	}
	for _, lang := range languages() {
		single := taken["single"+lang.id]
		f.table.add(newRow("one tool call from inside, "+lang.name+", at a single node", "ms", single),
			newRow("the same at a node of a cluster", "ms", taken["cluster"+lang.id]).aims("≤ 1.05 ×").times(single,
				"a single node"))
	}
	return nil
}

// worker is an agent that announces actions at a node.
type worker struct {
	*serving
	id, token string
	next      atomic.Int64
}

// register registers an agent.
func (s *serving) register(ctx context.Context, token string) (*worker, error) {
	var made struct {
		ID    string `json:"agent_id"`
		Token string `json:"agent_token"`
	}
	res, err := s.request(ctx, "/v1/agents", map[string]string{"Authorization": "Bearer " + token}, map[string]any{
		"name": "bench", "type": "autonomous", "budget": map[string]any{"max_requests_per_hour": 1 << 40}}, &made)
	if err == nil && made.Token == "" {
		err = fmt.Errorf("registering an agent: HTTP %d", res.StatusCode)
	}
	return &worker{serving: s, id: made.ID, token: made.Token}, err
}

// act announces an action of another conversation and requires that it is approved.
func (w *worker) act(ctx context.Context) error {
	var decided struct{ Decision string }
	place := fmt.Sprint("c", w.next.Add(1))
	headers := map[string]string{"X-Agent-Token": w.token}
	res, err := w.request(ctx, "/v1/agents/"+w.id+"/actions", headers, map[string]any{
		"action":  map[string]any{"type": "calculate", "query": place},
		"context": map[string]any{"conversation_id": place, "step_number": 1}}, &decided)
	if err == nil && decided.Decision != "APPROVED" {
		err = fmt.Errorf("an action: HTTP %d, %q", res.StatusCode, decided.Decision)
	}
	return err
}
