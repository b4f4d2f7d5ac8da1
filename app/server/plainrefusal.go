package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/problem"
)

// plainRefusal converts refusals of the SDK, which are plain text, to the format of all other
// error responses. The SDK distinguishes an unknown session from one of another caller;
// plainRefusal sends the same answer for both, so that guessing an ID reveals nothing. Refusals repeat headers and
// parts of the message, so they pass through the gate.
type plainRefusal struct {
	http.ResponseWriter
	gate Gate
	held int // a status that waits for its text; 0: none
	// message is what the request sent. It is empty before it is read.
	message []byte
}

// The texts with which the SDK refuses the ID of a session.
const (
	sdkUnknownSession = "session not found\n"
	sdkForeignSession = "session user mismatch\n"
)

// The beginnings of the texts with which the SDK refuses a message.
const (
	sdkUnknownMethod = "JSON RPC not handled: "
	sdkInvalid       = "invalid request: "
	sdkMalformed     = "malformed payload: " // followed by names of Go types
	sdkBatch         = "JSON-RPC batching "
)

// refusalCodes are the codes of refusals, by their status; bad_request for all others.
var refusalCodes = map[int]string{
	http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found",
	http.StatusMethodNotAllowed: "method_not_allowed", http.StatusConflict: "conflict",
	http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type",
	http.StatusInternalServerError: "internal",
}

// WriteHeader holds back the status of a refusal.
func (w *plainRefusal) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write converts a refusal in plain text, and sends everything else unchanged.
func (w *plainRefusal) Write(p []byte) (int, error) {
	status := w.held
	w.held = 0
	switch text := string(p); {
	case status == 0:
	case text == sdkUnknownSession || text == sdkForeignSession:
		problem.Write(w.ResponseWriter, http.StatusNotFound, "not_found", "there is no such session")
		return len(p), nil
	case status == http.StatusBadRequest && w.answer(strings.TrimSpace(text)):
		return len(p), nil
	case strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain"):
		code, known := refusalCodes[status]
		if !known {
			code = "bad_request"
		}
		problem.Write(w.ResponseWriter, status, code, w.gate.Text(strings.TrimSpace(text)))
		return len(p), nil
	default:
		clean := p
		if json.Valid(p) {
			clean = w.gate.JSON(p)
		}
		w.Header().Del("Content-Length")
		w.ResponseWriter.WriteHeader(status)
		if _, err := w.ResponseWriter.Write(clean); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// answer answers a message that the SDK refused: as on stdio, with an error that has the ID of the request, or null for
// a message without one (JSON-RPC 2.0, section 5). Some clients never end a request whose answer is only a status, so
// the status is 200 if there is an ID. An unknown notification is accepted and ignored. Answer reports whether the text
// was such a refusal.
func (w *plainRefusal) answer(text string) bool {
	text, unknown := strings.CutPrefix(text, sdkUnknownMethod)
	var o Outline
	isJSON := json.Valid(w.message)
	if isJSON {
		o.Write(w.message)
	}
	var answer []byte
	switch {
	case unknown && o.id == "":
		w.ResponseWriter.WriteHeader(http.StatusAccepted)
		return true
	case unknown:
		answer = o.refusal(jsonrpc.CodeMethodNotFound, text)
	case strings.HasPrefix(text, sdkMalformed) && !isJSON:
		answer = rejection(jsonrpc.CodeParseError, "the message is not JSON")
	case strings.HasPrefix(text, sdkMalformed):
		answer = o.Refusal(notAMessage)
	case strings.HasPrefix(text, sdkInvalid), strings.HasPrefix(text, sdkBatch):
		answer = o.Refusal(text)
	default:
		return false
	}
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Type", "application/json")
	if o.id == "" {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.ResponseWriter.Write(w.gate.JSON(answer)) // an error means that the client has disconnected
	return true
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *plainRefusal) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *plainRefusal) Flush() {
	w.release()
	// An error means that the client has disconnected.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// release sends a held status that has no text.
func (w *plainRefusal) release() {
	if w.held != 0 {
		w.ResponseWriter.WriteHeader(w.held)
		w.held = 0
	}
}
