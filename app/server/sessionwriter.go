package server

import "net/http"

// sessionWriter is the response to a request that opens a session. It registers the ID of the
// session before the client receives it, because the client may use the ID at once.
type sessionWriter struct {
	http.ResponseWriter
	begins func(id string)
	told   bool
}

func (w *sessionWriter) begin() {
	if w.told {
		return
	}
	w.told = true
	if id := w.Header().Get("Mcp-Session-Id"); id != "" {
		w.begins(id)
	}
}

// WriteHeader sends the status.
func (w *sessionWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *sessionWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *sessionWriter) Flush() {
	w.begin()
	// An error means that the client has disconnected.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}
