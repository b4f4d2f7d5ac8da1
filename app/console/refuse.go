package console

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// refusal is an error whose message is shown to a person.
type refusal struct {
	status  int
	message string // one sentence
	hint    string // what to do; may be empty
}

func (r *refusal) Error() string { return r.message }

var (
	errForeignForm = &refusal{http.StatusForbidden, "The form is not of this session.",
		"Open the page again and send it from there."}
	errOneProfile = &refusal{http.StatusForbidden,
		"You may not do this: the log is of all profiles, and your token is of one.",
		"Sign in with a token that has no profile."}
	errNoPage = &refusal{http.StatusNotFound, "There is no such page.", ""}
)

// notFound is the refusal for an object that does not exist or belongs to another caller.
func notFound(what string) error {
	return &refusal{http.StatusNotFound, "There is no such " + what + ".", ""}
}

func badForm(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return &refusal{http.StatusRequestEntityTooLarge, "The form is too large.", ""}
	}
	return &refusal{http.StatusBadRequest, "The form could not be read.", ""}
}

// refuse answers a signed-in caller with an error. Errors that are not meant for them are
// logged, and the page shows a fixed sentence.
func (c *Console) refuse(w http.ResponseWriter, q *query, err error) {
	var told *refusal
	var scope *auth.ScopeError
	switch {
	case errors.As(err, &told):
	case errors.As(err, &scope):
		told = &refusal{http.StatusForbidden, "You may not do this: it needs the scope " + scope.Scope + ".",
			"Sign in with a token that has it: airlock tokens create --scope " + visible.Word(scope.Scope)}
	default:
		c.opts.Logger.ErrorContext(q.Context(), "a page of the console failed",
			slog.String(telemetry.KeyPath, q.URL.Path), slog.Any(telemetry.KeyError, err))
		told = &refusal{http.StatusServiceUnavailable, "This could not be done.", "The log of airlock serve shows why."}
	}
	c.render(w, q, "refused", refusedView(told))
}

func refusedView(told *refusal) view {
	return view{title: http.StatusText(told.status), status: told.status,
		data: struct{ Message, Hint string }{told.message, told.hint}}
}

// notRouted answers a request for a page that does not exist.
func (c *Console) notRouted(w http.ResponseWriter, r *http.Request) {
	q, err := c.query(r)
	if err != nil {
		q = nil // without a session, no navigation is shown
	}
	c.render(w, q, "refused", refusedView(errNoPage))
}
