package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/contract"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// host is the far side of a guest's socket: it hands out one program, answers
// its calls from contract.Answer, and takes its delivery.
type host struct {
	language string
	code     string
	calls    atomic.Int64
	finished chan delivery
	files    *attachment.Draft
}

// delivery is the params of run/finish.
type delivery struct {
	OK        bool            `json:"ok"`
	HasResult bool            `json:"has_result"`
	Data      json.RawMessage `json:"data"`
	Error     *failure        `json:"error"`
	ExitCode  int             `json:"exit_code"`
	Note      string          `json:"note"`
}

type failure struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	Retryable bool   `json:"retryable"`
	Source    string `json:"source,omitempty"`
	CallID    string `json:"call_id,omitempty"`
}

// noStore keeps no file.
var noStore *attachment.Store

func newHost(language, code string) *host {
	return &host{language: language, code: code, finished: make(chan delivery, 1),
		files: noStore.Begin("run_1", caller.Owner{}, attachment.DefaultLimits)}
}

// handle is the host's side of docs/socket.md.
func (h *host) handle(_ context.Context, req wire.Request) (any, error) {
	switch req.Method {
	case "run/start":
		return map[string]string{"language": h.language, "code": h.code}, strictjson.Unmarshal(req.Params, &struct{}{})
	case "run/finish":
		var d delivery
		if err := strictjson.Unmarshal(req.Params, &d); err != nil {
			return nil, err
		}
		select {
		case h.finished <- d:
		default:
		}
		return struct{}{}, nil
	case "run/interrupt": // what these cases print, they print before they end
		return struct{}{}, strictjson.Unmarshal(req.Params, &struct{}{})
	case "run/attach":
		return h.attach(req.Params)
	case "tools/call":
		return h.call(req.Params)
	case "catalog/search":
		return h.search(req.Params)
	case "catalog/get":
		return h.get(req.Params)
	}
	return nil, fmt.Errorf("unknown method %q", req.Method)
}

// attach answers as the orchestrator does, of whose package the rules are.
func (h *host) attach(params json.RawMessage) (any, error) {
	var file struct {
		Name string `json:"name"`
		MIME string `json:"mime"`
		Data []byte `json:"data"`
	}
	if err := strictjson.Unmarshal(params, &file); err != nil {
		return nil, err
	}
	kept, err := h.files.Add(attachment.Inspect(file.Data, file.MIME, file.Name), file.Name)
	if err != nil {
		return map[string]any{"error": failure{Type: "OutputLimit", Message: err.Error(), Source: "broker"}}, nil
	}
	answer := map[string]any{"name": kept.Name, "mime_type": kept.MIME, "kind": string(kept.Kind), "bytes": kept.Bytes,
		"uri": attachment.URI("run_1", kept.Name)}
	if kept.Note != "" {
		answer["note"] = kept.Note
	}
	return answer, nil
}

func (h *host) call(params json.RawMessage) (any, error) {
	var call struct {
		Server    string          `json:"server_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Line      int             `json:"line"` // of the code
	}
	if err := strictjson.Unmarshal(params, &call); err != nil {
		return nil, err
	}
	id := fmt.Sprintf("call_%032x", h.calls.Add(1))
	refuse := func(kind, message string) (any, error) {
		return map[string]any{"ok": false, "error": failure{Type: kind, Message: message, CallID: id,
			Source: "broker"}}, nil
	}
	i := slices.IndexFunc(contract.Tools(), func(t contract.Tool) bool {
		return t.Server == call.Server &&
			t.Name == call.Name
	})
	if i < 0 {
		return refuse("UnknownTool", "there is no tool "+call.Name)
	}
	if contract.Tools()[i].Denied {
		return refuse("PolicyDenied", "policy denies the call")
	}
	raw, err := contract.Answer(call.Name, call.Arguments)
	if err != nil {
		return refuse("ValidationError", err.Error())
	}
	var answer struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if answer.IsError {
		told := failure{Type: "ToolError", Message: answer.Content[0].Text, CallID: id, Source: "tool"}
		return map[string]any{"ok": false, "error": told, "raw": raw}, nil
	}
	return map[string]any{"ok": true, "raw": raw}, nil
}

func (h *host) search(params json.RawMessage) (any, error) {
	var query struct {
		Query    string `json:"query"`
		ServerID string `json:"server_id"`
		Detail   string `json:"detail"`
		Limit    int    `json:"limit"`
	}
	if err := strictjson.Unmarshal(params, &query); err != nil {
		return nil, err
	}
	found := []map[string]string{}
	for _, tool := range contract.Tools() {
		if strings.Contains(tool.Name, query.Query) && (query.Limit == 0 || len(found) < query.Limit) {
			found = append(found, map[string]string{"serverId": tool.Server, "toolName": tool.Name,
				"description": tool.Description})
		}
	}
	missing := []map[string]string{{"serverId": contract.MissingServer, "problem": "it did not start"}}
	return map[string]any{"tools": found, "missingServers": missing}, nil
}

func (h *host) get(params json.RawMessage) (any, error) {
	var wanted struct {
		ServerID string `json:"server_id"`
		Name     string `json:"name"`
	}
	if err := strictjson.Unmarshal(params, &wanted); err != nil {
		return nil, err
	}
	for _, tool := range contract.Tools() {
		if tool.Server == wanted.ServerID && tool.Name == wanted.Name {
			definition := map[string]any{"name": tool.Name, "description": tool.Description,
				"inputSchema": tool.InputSchema}
			return map[string]any{"definition": definition}, nil
		}
	}
	return map[string]any{"error": failure{Type: "UnknownTool", Message: "there is no tool " + wanted.Name}}, nil
}

// judge returns the host's report of a run: docs/contract.md, "How a run ends".
func judge(d *delivery, exit exit, stdout string) (ok bool, data json.RawMessage, failed *failure) {
	switch {
	case d != nil && !d.OK:
		return false, nil, d.Error
	case d != nil && d.HasResult:
		return true, d.Data, nil
	case d == nil && exit.signal != 0:
		return false, nil, &failure{Type: "Killed", Message: fmt.Sprintf("signal %d", exit.signal), Source: "code"}
	case d == nil && exit.code != 0:
		return false, nil, &failure{Type: "NonZeroExit", Message: fmt.Sprintf("exit code %d", exit.code),
			Source: "code"}
	}
	return true, lastJSON(stdout), nil
}

func lastJSON(stdout string) json.RawMessage {
	if i := strings.LastIndex("\n"+stdout, "\n{\n"); i >= 0 && json.Valid([]byte(stdout[i:])) {
		return json.RawMessage(stdout[i:])
	}
	lines := strings.Split(stdout, "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" && json.Valid([]byte(line)) {
			return json.RawMessage(line)
		}
	}
	return json.RawMessage("null")
}

// report assembles the part of the envelope that cases look at.
func report(h *host, d *delivery, exit exit, stdout string) ([]byte, error) {
	if d != nil && !d.OK && d.Error == nil {
		return nil, errors.New("the guest delivered neither a result nor an error")
	}
	ok, data, failed := judge(d, exit, stdout)
	result := map[string]any{"ok": ok, "metrics": map[string]any{"calls": h.calls.Load()}}
	if ok {
		result["data"] = data
	} else {
		result["error"] = failed
	}
	line := map[string]any{"result": result}
	if d != nil && d.Note != "" {
		line["note"] = d.Note
	}
	return json.Marshal(line)
}
