package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// callParams are the params of tools/call.
type callParams struct {
	ServerID  string          `json:"server_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Line      int             `json:"line"` // of the code, as the client claims
}

func (r *run) handleCall(ctx context.Context, req wire.Request) (any, error) {
	params, plain := plainCall(req.Params)
	if !plain {
		params = callParams{}
		if err := decode(req, &params); err != nil {
			return nil, err
		}
	}
	call := broker.Call{ServerID: params.ServerID, Name: params.Name, Arguments: params.Arguments, Line: params.Line,
		Tag: string(req.ID)}
	if r.request.Restored() {
		var stored any
		if stored, call.Expires = r.pauser.reopened(call.Tag); stored != nil {
			r.request.saved.here.settled()
			return stored, nil
		}
		defer r.request.saved.here.settled()
	}
	answer, read := r.calls.CallUnread(ctx, call)
	answered := callAnswer{answer, lasting{read}}
	r.pauser.answered(ctx, call.Tag, answered)
	return answered, nil
}

// plainCall reads params in the form that our clients write: each member occurs once, and
// the names of members, server and tool have no escapes. It returns false for other params,
// which decode must read.
func plainCall(raw json.RawMessage) (callParams, bool) {
	var server, name, arguments, line []byte
	all := strictjson.EachMember(raw, canon.MaxDepth, func(member, value []byte) bool {
		switch {
		case string(member) == "server_id" && server == nil:
			server = value
		case string(member) == "name" && name == nil:
			name = value
		case string(member) == "arguments" && arguments == nil:
			arguments = value
		case string(member) == "line" && line == nil:
			line = value
		default:
			return false
		}
		return true
	})
	p := callParams{Arguments: arguments}
	var serverPlain, namePlain bool
	p.ServerID, serverPlain = wire.PlainText(server)
	p.Name, namePlain = wire.PlainText(name)
	if !all || !serverPlain || !namePlain {
		return callParams{}, false
	}
	if line != nil {
		var err error
		if p.Line, err = strconv.Atoi(string(line)); err != nil {
			return callParams{}, false
		}
	}
	return p, true
}

// callAnswer is the answer to tools/call.
type callAnswer struct {
	broker.Answer
	lasting
}

var (
	_ wire.Appender = callAnswer{}
	_ wire.Lasting  = callAnswer{}
)

// AppendJSON appends the answer. The broker guarantees that a result is valid JSON, so it is
// copied unchanged unless it contains a line end.
func (a callAnswer) AppendJSON(text []byte) ([]byte, error) {
	if a.Error != nil || !a.OK || len(a.Raw) == 0 || bytes.IndexByte(a.Raw, '\n') >= 0 {
		return wire.AppendValue(text, a.Answer)
	}
	return append(append(append(text, `{"ok":true,"raw":`...), a.Raw...), '}'), nil
}
