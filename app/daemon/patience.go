package daemon

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// writePart is how many bytes of an answer a client has limits.readTime for.
const writePart = 64 << 10

// patient gives clients a time to send a body and a time for each part of an
// answer. The server's own time limits would end an answer that streams for long.
func patient(l limits, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// A chunked body may have had a length, too, which net/http drops. Then bytes behind the body must not be read as
		// a request (RFC 9112, section 6.1).
		timed := &timedWriter{ResponseWriter: w, control: control, readTime: l.readTime, closes: len(r.TransferEncoding) > 0}
		if r.Body != http.NoBody {
			// An error means a connection that has no such limit; the header's time is over.
			_ = control.SetReadDeadline(time.Now().Add(l.bodyTime))
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(timed, r)
		timed.closeAfter() // if nothing was written so far
	})
}

// timedBody lifts the time limit when the body is read: the connection is watched
// for its end from then on.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads, and lifts the limit at the end.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timedWriter ends the connection of a client that does not take in its answer. No other writer is between it and the
// connection, so that no handler undoes what it sets.
type timedWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	readTime time.Duration // for each part
	closes   bool          // the connection ends after the answer
}

// closeAfter has the connection end after the answer, if it must. It has no effect once the header is written.
func (w *timedWriter) closeAfter() {
	if w.closes {
		w.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *timedWriter) WriteHeader(status int) {
	w.closeAfter()
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes in parts, each within readTime.
func (w *timedWriter) Write(p []byte) (written int, err error) {
	w.closeAfter()
	for first := true; first || len(p) > 0; first = false {
		part := p[:min(len(p), writePart)]
		_ = w.control.SetWriteDeadline(time.Now().Add(w.readTime))
		n, err := w.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// FlushError writes out what is buffered, within readTime.
func (w *timedWriter) FlushError() error {
	w.closeAfter()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.readTime))
	return w.control.Flush()
}

// Flush is FlushError for http.Flusher.
func (w *timedWriter) Flush() { _ = w.FlushError() }
