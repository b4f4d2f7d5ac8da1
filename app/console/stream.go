package console

import (
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// stream is a file of any length that browsers save and do not show.
type stream struct {
	name  string
	write func(w io.Writer) error
}

// send sends the file. If that fails, it aborts the connection, so that the browser does not save
// a part as the whole file.
func (s *stream) send(c *Console, w http.ResponseWriter, q *query) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": s.name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	if err := s.write(w); err != nil {
		if q.Context().Err() == nil {
			c.opts.Logger.ErrorContext(q.Context(), "a file of the console could not be sent",
				slog.String("path", q.URL.Path), slog.Any(telemetry.KeyError, err))
		}
		panic(http.ErrAbortHandler) // net/http requires this value
	}
}
