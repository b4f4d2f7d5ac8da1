package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/kernel/vfs"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// Request is an action of an agent.
type Request struct {
	Action   string
	Agent    string
	Params   json.RawMessage // an object; empty means none
	Policies []string        // names of policies to apply to this action
}

// Limits of a request.
const (
	maxParams   = 8 << 20 // bytes
	maxAction   = 200     // bytes of its name
	maxPolicies = 32
)

// Executed is the result of a permitted action.
type Executed struct {
	Status   string   `json:"status"` // executed or failed
	Action   string   `json:"action"`
	Result   string   `json:"result,omitempty"` // a sentence; set if the action was executed
	Received []string `json:"params_received"`  // names, in order
	// Output is the result of the server or the program.
	Output json.RawMessage `json:"output,omitempty"`
	RunID  string          `json:"run_id,omitempty"`
	Error  *Failure        `json:"error,omitempty"` // set if the action failed
}

// job is one action in progress.
type job struct {
	Request
	actor  Actor
	agent  agents.Agent
	params map[string]any
	target Action // of a tool; Server is empty for the kernel's own actions
	known  bool   // the action is built in or configured
}

// Execute carries out an action if the agent's state and the named policies permit it. If they
// block it, the error is a *Refusal whose text begins with the signal that stops the agent: SIGKILL
// for this action, SIGSTOP until the agent is resumed. Every attempt is recorded before anything is
// done.
func (s *Service) Execute(ctx context.Context, a Actor, r Request) (Executed, error) {
	j := job{Request: r, actor: a, params: map[string]any{}}
	var err error
	if j.agent, err = s.actAs(ctx, a, r.Agent, "kernel_execute"); err != nil { // it records a refusal
		return Executed{}, err
	}
	if err := s.prepare(&j); err != nil {
		return Executed{}, s.refused(ctx, j, err)
	}
	ruling, _, err := s.opts.Admission.Decide(ctx, j.act(s.opts.Policies, s.toolRisk(j)))
	if err != nil {
		return Executed{}, err
	}
	e := event{tool: "kernel_execute", agent: j.agent.ID, decision: allowed, policies: ruling.Policies,
		version: s.opts.Policies.Version(),
		detail:  "action " + short(j.Action), hashed: j.Params}
	reason := whyNot(ruling)
	if reason == "" && !j.known {
		reason = fmt.Sprintf(
			"Action %q is not configured: kernel.actions names the tool that it stands for, and there are %s",
			short(j.Action), s.actions())
	}
	if reason != "" {
		e.decision, e.detail = denied, joined(e.detail, reason)
	}
	if err := s.record(ctx, a, e); err != nil {
		return Executed{}, err
	}
	if reason != "" {
		return Executed{}, refuse("%s", reason)
	}
	done, err := s.dispatch(ctx, j)
	return done, s.refused(ctx, j, err)
}

// refused returns err. If it is a *Refusal, refused records it.
func (s *Service) refused(ctx context.Context, j job, err error) error {
	var no *Refusal
	if !errors.As(err, &no) {
		return err
	}
	return errors.Join(err, s.record(ctx, j.actor, event{tool: "kernel_execute", agent: j.agent.ID, decision: denied,
		detail: joined("action "+short(j.Action), no.Text), hashed: j.Params}))
}

// act describes the action to admission.
func (j job) act(named *policies.Named, risk policies.Risk) admission.Act {
	return admission.Act{
		Kind: admission.KernelAction, Agent: j.agent.ID, Name: j.Action, Arguments: j.Params, Recorded: true,
		Execution: &admission.Execution{Named: named, Policies: j.Policies, Params: j.params, SQL: j.target.SQL,
			Risk: risk, Forwarded: !ownActions[j.Action].free},
	}
}

// toolRisk returns the risk of the tool that carries out an action.
func (s *Service) toolRisk(j job) policies.Risk {
	risk, _ := s.opts.Dispatcher.Risk(j.actor.as(j.agent), j.target.Server, j.target.Tool)
	return risk
}

// whyNot returns the reason why an action is refused, or "". It begins with the signal that stops
// the agent.
func whyNot(r admission.Ruling) string {
	if r.Error == nil {
		return ""
	}
	switch r.Error.Reason {
	case admission.Killed:
		return "SIGKILL: Agent was killed"
	case admission.Suspended:
		return "SIGSTOP: Agent is stopped until it gets SIGCONT"
	case admission.Violation:
		return "SIGKILL: Policy violation - " + r.Error.Message
	}
	return r.Refusal()
}

// prepare parses the parameters.
func (s *Service) prepare(j *job) error {
	switch {
	case strings.TrimSpace(j.Action) == "" || len(j.Action) > maxAction:
		return refuse("action must have 1 to %d bytes", maxAction)
	case len(j.Params) > maxParams:
		return refuse("params has %d bytes, and %d are allowed", len(j.Params), maxParams)
	case len(j.Policies) > maxPolicies:
		return refuse("policies has %d names, and %d are allowed", len(j.Policies), maxPolicies)
	}
	if len(j.Params) == 0 {
		j.Params = json.RawMessage("{}")
	}
	value, err := strictjson.Value(j.Params)
	if err != nil {
		return refuse("params: %v", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return refuse("params is not an object")
	}
	j.params = object
	j.target, j.known = s.opts.Actions[j.Action]
	if _, own := ownActions[j.Action]; own {
		j.target, j.known = Action{}, true
	} else if !j.known && strings.HasPrefix(j.Action, "database_") {
		j.target.SQL = "query" // the policies judge it as SQL
	}
	return nil
}

// ownAction is an action that the kernel carries out itself.
type ownAction struct {
	free bool // it becomes no run, so nothing else decides about it
	do   func(*Service, context.Context, job) (Output, error)
}

// ownActions are the actions on the agent's files, and a run.
var ownActions = map[string]ownAction{
	"file_read":    {true, (*Service).fileRead},
	"file_write":   {true, (*Service).fileWrite},
	"file_delete":  {true, (*Service).fileDelete},
	"file_list":    {true, (*Service).fileList},
	"execute_code": {false, (*Service).executeCode},
}

// actions lists the existing actions.
func (s *Service) actions() string {
	names := slices.Sorted(maps.Keys(s.opts.Actions))
	names = append(names, slices.Sorted(maps.Keys(ownActions))...)
	return strings.Join(names, ", ")
}

func (s *Service) dispatch(ctx context.Context, j job) (Executed, error) {
	done := Executed{Action: j.Action, Received: append([]string{}, slices.Sorted(maps.Keys(j.params))...)}
	var out Output
	var err error
	if own, ok := ownActions[j.Action]; ok {
		out, err = own.do(s, ctx, j)
	} else {
		out, err = s.opts.Dispatcher.Call(ctx, j.actor.as(j.agent), j.target.Server, j.target.Tool, j.Params)
	}
	if err != nil {
		return Executed{}, err
	}
	done.RunID = out.RunID
	if out.Failure != nil {
		done.Status, done.Error = "failed", out.Failure
		return done, nil
	}
	done.Status, done.Result, done.Output = "executed", fmt.Sprintf("Action '%s' executed successfully", j.Action),
		out.Data
	if slices.Contains(j.Policies, "no_pii") {
		done.Output, err = withoutPersonal(out.Data)
	}
	return done, err
}

// withoutPersonal removes personal data from the output of an action under no_pii.
func withoutPersonal(data json.RawMessage) (json.RawMessage, error) {
	if len(data) == 0 {
		return data, nil
	}
	cleaned, _, err := redact.New().JSON(data)
	return cleaned, err
}

// text returns a parameter of the kernel's own actions.
func (j job) text(name string, needed bool) (string, error) {
	value, there := j.params[name]
	text, ok := value.(string)
	switch {
	case !there && !needed:
		return "", nil
	case !there:
		return "", refuse("%s needs params.%s", j.Action, name)
	case !ok:
		return "", refuse("params.%s is not a string", name)
	}
	return text, nil
}

// own refuses parameters that an action does not take, so that a misspelt one is not ignored
// silently.
func (j job) own(names ...string) error {
	for name := range j.params {
		if !slices.Contains(names, name) {
			return refuse("%s takes no params.%s, only %s", j.Action, short(name), strings.Join(names, ", "))
		}
	}
	return nil
}

func (s *Service) fileRead(ctx context.Context, j job) (Output, error) {
	path, err := j.text("path", true)
	if err := errors.Join(err, j.own("path")); err != nil {
		return Output{}, err
	}
	content, err := s.opts.Files.Read(ctx, j.agent.ID, path)
	if err != nil {
		return ofFiles(err)
	}
	return encoded(map[string]any{"path": path, "content": string(content), "bytes": len(content)})
}

func (s *Service) fileWrite(ctx context.Context, j job) (Output, error) {
	path, err := j.text("path", true)
	content, missing := j.text("content", true)
	if err := errors.Join(err, missing, j.own("path", "content")); err != nil {
		return Output{}, err
	}
	if err := s.opts.Files.Write(ctx, j.agent.ID, path, []byte(content)); err != nil {
		return ofFiles(err)
	}
	return encoded(map[string]any{"path": path, "bytes": len(content)})
}

func (s *Service) fileDelete(ctx context.Context, j job) (Output, error) {
	path, err := j.text("path", true)
	if err := errors.Join(err, j.own("path")); err != nil {
		return Output{}, err
	}
	if err := s.opts.Files.Remove(ctx, j.agent.ID, path); err != nil {
		return ofFiles(err)
	}
	return encoded(map[string]any{"path": path})
}

// maxListed is the maximum number of files in one list.
const maxListed = 1000

func (s *Service) fileList(ctx context.Context, j job) (Output, error) {
	directory, err := j.text("path", false)
	after, wrong := j.text("after", false)
	if err := errors.Join(err, wrong, j.own("path", "after")); err != nil {
		return Output{}, err
	}
	files, err := s.opts.Files.List(ctx, j.agent.ID, directory, after, maxListed)
	if err != nil {
		return ofFiles(err)
	}
	return encoded(map[string]any{"files": files})
}

// ofFiles converts an error that the agent can correct to a failure; it returns other errors
// unchanged.
func ofFiles(err error) (Output, error) {
	var path *vfs.PathError
	var limit *vfs.LimitError
	switch {
	case errors.As(err, &path):
		return Output{Failure: &Failure{Type: "InvalidPath", Message: path.Text}}, nil
	case errors.As(err, &limit):
		return Output{Failure: &Failure{Type: "LimitExceeded", Message: limit.Text}}, nil
	case errors.Is(err, vfs.ErrNotFound), errors.Is(err, vfs.ErrDamaged):
		return Output{Failure: &Failure{Type: "NotFound", Message: err.Error()}}, nil
	}
	return Output{}, err
}

func encoded(value any) (Output, error) {
	raw, err := json.Marshal(value)
	return Output{Data: raw}, err
}

func (s *Service) executeCode(ctx context.Context, j job) (Output, error) {
	language, err := j.text("language", true)
	code, missing := j.text("code", true)
	if err := errors.Join(err, missing, j.own("language", "code")); err != nil {
		return Output{}, err
	}
	return s.opts.Dispatcher.Run(ctx, j.actor.as(j.agent), language, code)
}
