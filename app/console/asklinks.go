package console

import (
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// askPath is the path of one-time links to questions.
const askPath = "/ask"

// askLinks are the one-time links to open questions. They are sent to chats that other people and programs read, so a
// link gives no rights: the person signs in. The zero value is ready to use. Its methods are safe for concurrent use.
type askLinks struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]string // questions, by the hashes of the codes
}

func (a *askLinks) add(code, question string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[[sha256.Size]byte]string{}
	}
	a.of[sha256.Sum256([]byte(code))] = question
}

func (a *askLinks) find(code string) (question string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	question, ok = a.of[sha256.Sum256([]byte(code))]
	return question, ok
}

// use removes a link and reports whether it was there.
func (a *askLinks) use(code string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := sha256.Sum256([]byte(code))
	_, ok := a.of[key]
	delete(a.of, key)
	return ok
}

// AskLink returns a one-time URL, as path and query, that leads to an open question. The caller must call EndLinks when
// the question is closed.
func (c *Console) AskLink(question string) string {
	code := c.node.Mark(newSecret())
	c.asks.add(code, question)
	return askPath + "?code=" + code
}

// EndLinks removes the links to a question.
func (c *Console) EndLinks(question string) {
	c.asks.mu.Lock()
	defer c.asks.mu.Unlock()
	maps.DeleteFunc(c.asks.of, func(_ [sha256.Size]byte, of string) bool { return of == question })
}

// showAsk shows a button that opens the question. It does not use the link, because programs that show previews of
// links send GET requests. A browser that follows a link of another site does not send the cookie of its session.
func (c *Console) showAsk(w http.ResponseWriter, r *http.Request) {
	c.render(w, nil, "ask", view{title: "A call waits for a person", data: r.URL.Query().Get("code")})
}

// useAsk redirects a person who may answer the question to it, once.
func (c *Console) useAsk(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.render(w, nil, "refused", refusedView(errForm))
		return
	}
	code := r.PostForm.Get("code")
	q, err := c.query(r)
	if errors.Is(err, auth.ErrNone) {
		w.Header().Set("Location", signInPath+"?next="+url.QueryEscape(askPath+"?code="+url.QueryEscape(code)))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if err != nil {
		c.toSignIn(w, r, err)
		return
	}
	question, ok := c.asks.find(code)
	_, asking, err := c.opts.Approvals.Find(question)
	switch {
	case !ok:
		q.notify("The link was used already, or its question is closed.")
		c.answer(w, q, "questions", view{redirect: "/"})
	case !q.may(auth.ScopeApprove) || !q.who.May(caller.People, caller.Change,
		asking.Object(strings.Fields(asking.Roles))): // the link stays for the person who may
		c.refuse(w, q, notFound("question"))
	case errors.Is(err, approval.ErrClosed) || c.asks.use(code):
		c.answer(w, q, "questions", view{redirect: "/questions/" + url.PathEscape(question)})
	default: // used by another request meanwhile
		c.answer(w, q, "questions", view{redirect: "/questions"})
	}
}
