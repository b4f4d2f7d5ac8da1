package server

import (
	"net/http"

	"github.com/airlock-mcp/airlock/internal/problem"
)

// noSession answers alike for a session that there is not and for one of another
// caller, which the SDK tells apart: who guesses an ID learns nothing.
type noSession struct {
	http.ResponseWriter
	held int // a status that the text behind it explains; 0: none
}

// The texts with which the SDK refuses the ID of a session.
const (
	sdkUnknownSession = "session not found\n"
	sdkForeignSession = "session user mismatch\n"
)

// WriteHeader holds back the statuses of a refusal.
func (w *noSession) WriteHeader(status int) {
	if status == http.StatusForbidden || status == http.StatusNotFound {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the one answer in place of the SDK's two; every other text as it is.
func (w *noSession) Write(p []byte) (int, error) {
	status := w.held
	w.held = 0
	if status != 0 && (string(p) == sdkUnknownSession || string(p) == sdkForeignSession) {
		problem.Write(w.ResponseWriter, http.StatusNotFound, "not_found", "there is no such session")
		return len(p), nil
	}
	if status != 0 {
		w.ResponseWriter.WriteHeader(status)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *noSession) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush is for what asks for an http.Flusher.
func (w *noSession) Flush() {
	w.release()
	// An error means that the client has disconnected.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// release sends a status without a text behind it.
func (w *noSession) release() {
	if w.held != 0 {
		w.ResponseWriter.WriteHeader(w.held)
		w.held = 0
	}
}
