package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// In a cluster, a browser is signed in at one node. The pages of a run are those of the node that has it, other pages
// those of the node of the session, which asks the others for their part of a list. A page of a run needs the session,
// so its node shares it with the others.

// nodeField is the query parameter with the reference of the node whose page is shown.
const nodeField = "node"

// forwarded passes a request to the node that has its subject: a run, a sign-in to a server, the code of a link, or the
// session.
func (c *Console) forwarded(w http.ResponseWriter, r *http.Request) bool {
	node := c.node
	if node == nil || strings.HasPrefix(r.URL.Path, "/assets/") {
		return false
	}
	said := r.URL.Query()
	for _, id := range []string{runOfPath(r.URL.Path), signInOfPath(r.URL.Path), said.Get(nodeField), said.Get("state"),
		said.Get("code"), c.sessionID(r)} {
		switch node.Owner(r.Context(), id) {
		case "":
			continue
		case node.Name():
			return false
		}
		// A session that has ended with its node is unknown, and there may be copies of the records of a run.
		canAnswer := id == c.sessionID(r) || id == runOfPath(r.URL.Path) && r.Method == http.MethodGet
		answers := false
		done := node.Forward(w, r, id, func(gone bool) {
			if answers = gone && canAnswer; !answers {
				w.Header().Set("Retry-After", "1")
				c.render(w, nil, "refused", refusedView(errNodeAway))
			}
		})
		return done && !answers
	}
	return false
}

var errNodeAway = &refusal{http.StatusServiceUnavailable, "The node of the cluster that has this does not answer.",
	"Try again in a moment."}

// runOfPath returns the run of a path, or an empty text.
func runOfPath(path string) string {
	rest, _ := strings.CutPrefix(path, "/runs/")
	run, _, _ := strings.Cut(rest, "/")
	return run
}

// shareAgain is how long a session that is used is not shared again.
const shareAgain = 10 * time.Minute

// sharedSession is a session as its node shares it.
type sharedSession struct {
	Token   string         `json:"token,omitempty"`
	Given   *caller.Caller `json:"given,omitempty"`
	Person  *auth.Person   `json:"person,omitempty"`
	Account string         `json:"account"`
	Form    string         `json:"form"`
	Began   time.Time      `json:"began"`
}

// share lets other nodes read a session, for as long as it may be idle.
func (c *Console) share(ctx context.Context, s *session) {
	if c.node == nil || !s.sharesNow(c.opts.Now()) {
		return
	}
	text, err := json.Marshal(sharedSession{s.token.Reveal(), s.given, s.person, s.account, s.form, s.began})
	if err == nil {
		err = c.node.Share(ctx, s.name, text, quota.For(quota.Browsers).Idle)
	}
	if err != nil {
		c.opts.Logger.WarnContext(ctx, "other nodes do not know a session of the console",
			slog.Any(telemetry.KeyError, err))
	}
}

// sharesNow reports whether a session is to be shared, because it was not for a while.
func (s *session) sharesNow(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.shared) < shareAgain {
		return false
	}
	s.shared = now
	return true
}

// ended is called for each session that is removed.
func (c *Console) ended(s *session) {
	c.flows.endOf(s)
	ctx := context.Background()
	if err := c.node.Withdraw(ctx, s.name); err != nil {
		c.opts.Logger.WarnContext(ctx, "a session of the console that has ended is known to other nodes",
			slog.Any(telemetry.KeyError, err))
	}
}

// guest returns the session of another node, or nil.
func (c *Console) guest(ctx context.Context, id string) *session {
	if c.node.Owner(ctx, id) == "" { // then the database is not asked
		return nil
	}
	text, known := c.node.Shared(ctx, nameOf(id))
	var shared sharedSession
	if !known || strictjson.UnmarshalOpen(text, &shared) != nil || c.opts.Now().Sub(shared.Began) >= sessionTime {
		return nil
	}
	return &session{name: nameOf(id), token: secret.New(shared.Token), given: shared.Given, person: shared.Person,
		account: shared.Account, form: shared.Form, began: shared.Began}
}

// nameOf returns the name under which a session is shared. The ID itself is not stored.
func nameOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "console " + hex.EncodeToString(sum[:])
}

// nodeLink is one node in the frame of a page.
type nodeLink struct {
	Name, Path string
	Here       bool
	Silent     bool // it does not answer
}

// isMerged reports whether the page of a path shows what all nodes have.
func isMerged(path string) bool { return path == "/runs" || path == "/servers" || path == "/audit" }

// nodeLinks returns the nodes whose page can be shown in place of this one, or nil.
func (c *Console) nodeLinks(q *query) []nodeLink {
	node := c.node
	others, reached := node.Others()
	if len(others) == 0 || q.Method != http.MethodGet || runOfPath(q.URL.Path) != "" {
		return nil
	}
	to := func(name string) string { return q.URL.Path + "?" + nodeField + "=" + node.Reference(name) }
	one := q.URL.Query().Get(nodeField) != "" || !isMerged(q.URL.Path)
	links := []nodeLink{{Name: node.Name(), Path: to(node.Name()), Here: one}}
	if isMerged(q.URL.Path) {
		links = slices.Insert(links, 0, nodeLink{Name: "all", Path: q.URL.Path, Here: !one})
	}
	for _, name := range others {
		links = append(links, nodeLink{Name: name, Path: to(name), Silent: !reached[name]})
	}
	return links
}
