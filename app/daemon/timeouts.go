package daemon

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// writePart is the number of bytes of an answer that a client must read within
// limits.readTime.
const writePart = 64 << 10

// withTimeouts sets a deadline for the body of a request and for each part of an answer. The
// timeouts of http.Server would end an answer that streams for a long time.
func withTimeouts(l limits, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// A chunked body may have had a length, too, which net/http drops. Then bytes after the
		// body must not be read as a request (RFC 9112, section 6.1).
		timed := &timedWriter{ResponseWriter: w, control: control, readTime: l.readTime,
			closes: len(r.TransferEncoding) > 0}
		if r.Body != http.NoBody {
			// An error means that the connection does not support deadlines.
			_ = control.SetReadDeadline(time.Now().Add(l.bodyTime))
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(timed, r)
		timed.closeAfter() // if nothing was written so far
	})
}

// timedBody removes the read deadline at the end of the body, because net/http then reads from
// the connection to detect that the client disconnects.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timedWriter ends the connection of a client that does not read its answer. It wraps the
// writer of net/http directly, so that no handler can override the headers that it sets.
type timedWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	readTime time.Duration // for each part
	closes   bool          // the connection ends after the answer
}

// closeAfter closes the connection after the answer if closes is set. It has no effect after
// the header is written.
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

// FlushError writes buffered data within readTime.
func (w *timedWriter) FlushError() error {
	w.closeAfter()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.readTime))
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() { _ = w.FlushError() }
