package server

import "net/http"

// beginning is the response to a request that opens a session. It registers the ID of the
// session before the client receives it, because the client may use the ID at once.
type beginning struct {
	http.ResponseWriter
	begins func(id string)
	told   bool
}

func (w *beginning) tell() {
	if w.told {
		return
	}
	w.told = true
	if id := w.Header().Get("Mcp-Session-Id"); id != "" {
		w.begins(id)
	}
}

// WriteHeader sends the status.
func (w *beginning) WriteHeader(status int) {
	w.tell()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *beginning) Write(p []byte) (int, error) {
	w.tell()
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *beginning) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *beginning) Flush() {
	w.tell()
	// An error means that the client has disconnected.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}
