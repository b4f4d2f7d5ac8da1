package daemon

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// writePart is the number of bytes of an answer that a client must read within
// limits.readTime.
const writePart = 64 << 10

// maxDrained is the maximum number of bytes of a body that are read after its request was refused.
const maxDrained = 64 << 20

// withTimeouts sets a deadline for the body of a request and for each part of an answer. The
// timeouts of http.Server would end an answer that streams for a long time.
//
// The rest of a body that is too large is read before the answer is sent: some clients read no answer before they have
// sent their request, and http.Server would end their connection.
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
			body := &timedBody{ReadCloser: r.Body, control: control}
			defer body.drain()
			r.Body = body
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
	begun   bool
	err     error // of the last read
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (n int, err error) {
	b.begun = true
	n, b.err = b.ReadCloser.Read(p)
	if errors.Is(b.err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, b.err
}

// drain reads the rest of the body, unless no part of it was read: callers that are not known get their answer at once.
func (b *timedBody) drain() {
	if b.begun && b.err == nil {
		_, _ = io.CopyN(io.Discard, b, maxDrained)
	}
}

// timedWriter ends the connection of a client that does not read its answer. It wraps the
// writer of net/http directly, so that no handler can override the headers that it sets.
type timedWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	readTime time.Duration // for each part
	closes   bool          // the connection ends after the answer

	mu    sync.Mutex
	ended bool // by SetWriteDeadline
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

// SetWriteDeadline is for http.ResponseController. The rest of the answer must be written before the deadline: no part
// extends it.
func (w *timedWriter) SetWriteDeadline(deadline time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return w.control.SetWriteDeadline(deadline)
}

// extend gives the client readTime to read the next part.
func (w *timedWriter) extend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.readTime))
	}
}

// Write writes in parts, each within readTime.
func (w *timedWriter) Write(p []byte) (written int, err error) {
	w.closeAfter()
	for first := true; first || len(p) > 0; first = false {
		part := p[:min(len(p), writePart)]
		w.extend()
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
	w.extend()
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *timedWriter) Flush() { _ = w.FlushError() }
