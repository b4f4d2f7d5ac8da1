package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// sessionDirectory is where the sandbox has the files of its session.
const sessionDirectory = "/workspace/session"

// keptResults are the names of the results that a run has kept as files.
type keptResults struct {
	mu    sync.Mutex // guards names
	names map[string]int
}

// keepResult keeps a result that is too large for the socket as a file of the session. It is the Keep of a run's calls.
// The client inside fetches it with session/result. A call without code has no sandbox, so the file goes to the session
// at once, for its next run.
func (r *run) keepResult(ctx context.Context, call broker.Call, result json.RawMessage) (file, problem string) {
	content, extension := fileOf(result)
	name := r.resultName(call, extension)
	var err error
	if r.request.Call == nil {
		err = r.session.Put(name, content)
	} else {
		var pieces []sessionfiles.Piece
		for piece := range slices.Chunk(content, sessionfiles.MaxPiece) {
			pieces = append(pieces, sessionfiles.Piece{Path: name, Data: piece, Append: len(pieces) > 0})
		}
		err = r.session.Save(ctx, pieces, nil, true)
	}
	var limit *sessionfiles.LimitError
	switch {
	case errors.As(err, &limit):
		return "", "the session cannot hold it: " + limit.Problem +
			"; remove files from /workspace/session in a run before, or make it smaller"
	case err != nil:
		r.parts.Logger.ErrorContext(ctx, "a large result could not be kept",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		return "", "it could not be written; the run's ID leads to the cause in the log"
	}
	return path.Join(sessionDirectory, name), ""
}

// resultName returns the name of the file for a result: that of the tool, with a number if the run has kept one of it
// before. A file of an earlier run is replaced.
func (r *run) resultName(call broker.Call, extension string) string {
	const longest = 100 // characters
	plain := strings.Map(func(c rune) rune {
		if c < 0x80 && (c == '-' || c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' ||
			c >= 'A' && c <= 'Z') {
			return c
		}
		return '_'
	}, call.ServerID+"."+call.Name)
	plain = strings.TrimLeft(plain[:min(len(plain), longest)], ".")
	r.kept.mu.Lock()
	defer r.kept.mu.Unlock()
	if r.kept.names == nil {
		r.kept.names = map[string]int{}
	}
	if r.kept.names[plain]++; r.kept.names[plain] > 1 {
		plain = fmt.Sprintf("%s-%d", plain, r.kept.names[plain])
	}
	return plain + extension
}

// fileOf returns the content of the file for the result of a tool or a resource, and its extension: the value that the
// code would have got (docs/contract.md, `data`), a text as it is.
func fileOf(result json.RawMessage) (content []byte, extension string) {
	var structured, list json.RawMessage
	plain := strictjson.EachMember(result, canon.MaxDepth, func(name, value []byte) bool {
		switch string(name) {
		case "structuredContent":
			structured = value
		case "content", "contents": // the latter of a resource
			list = value
		}
		return true
	})
	if plain && len(structured) > 0 && !bytes.Equal(structured, []byte("null")) {
		return structured, ".json"
	}
	if !plain || list == nil {
		return result, ".json"
	}
	var blocks []struct {
		Text *string `json:"text"`
	}
	if strictjson.UnmarshalOpen(list, &blocks) != nil || len(blocks) != 1 || blocks[0].Text == nil {
		return list, ".json"
	}
	text := []byte(*blocks[0].Text)
	if start := bytes.TrimSpace(text); len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(text) {
		return text, ".json"
	}
	return text, ".txt"
}

// handleResult hands out the next part of a result that was kept as a file.
func (r *run) handleResult(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		File string `json:"file"`
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	if r.session == nil {
		return nil, wire.Violation("%s was sent, but no files are kept", methodResult)
	}
	data, more, err := r.session.Take(path.Base(params.File))
	if err != nil {
		r.parts.Logger.InfoContext(ctx, "a kept result could not be read",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		return map[string]string{"problem": "the file is not there any more: make the call again"}, nil
	}
	return struct {
		Data []byte `json:"data"`
		More bool   `json:"more"`
	}{data, more}, nil
}
