package server

import (
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/approval"
)

// sessions ends what belongs to a host's conversation when the conversation is
// over: its runs, what rules know of it, and the channel through which its
// people are asked. A session of the protocol ends with its connection; that of
// a credential, under the revision without sessions, with the server.
type sessions struct {
	end       func(sessionID string)
	approvals Approvals // nil: people are not asked through the host
	watching  sync.WaitGroup

	mu       sync.Mutex                    // guards what follows
	followed map[*mcp.ServerSession]func() // what ends with them: those whose end is awaited
	attended map[*mcp.ServerSession]func() // and those whose host is asked
	lasting  map[string]bool               // IDs of sessions that end with the server
}

func newSessions(end func(sessionID string), approvals Approvals) *sessions {
	return &sessions{
		end: end, approvals: approvals,
		followed: map[*mcp.ServerSession]func(){}, attended: map[*mcp.ServerSession]func(){}, lasting: map[string]bool{},
	}
}

// follow ends the session of a caller that makes runs when it is over. The
// session of a connection that is no HTTP ends in Serve.
func (s *sessions) follow(c call) {
	if !isHTTP(c.request) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.request.Session.ID() == "" {
		s.lasting[c.caller.Session] = true
		return
	}
	s.onceLocked(s.followed, c.request.Session, func() { s.end(c.caller.Session) })
}

// attend makes the host of a revision in which a server may ask while it works
// on a request the channel of its session, until the session ends.
func (s *sessions) attend(c call, asker approval.Asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attended[c.request.Session] != nil {
		return
	}
	unregister := s.approvals.Register(c.caller.Session, asker)
	s.onceLocked(s.attended, c.request.Session, unregister)
}

// onceLocked calls ended once, when the session is over.
func (s *sessions) onceLocked(known map[*mcp.ServerSession]func(), session *mcp.ServerSession, ended func()) {
	if known[session] != nil {
		return
	}
	known[session] = ended
	s.watching.Go(func() {
		// Why the session ended does not matter here; Serve reports it.
		_ = session.Wait()
		ended()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(known, session)
	})
}

// close ends every session: a host that has gone over HTTP without a word leaves
// one behind. First come the runs, since the SDK waits for the requests of a session
// that it ends, and they for their runs.
func (s *sessions) close() {
	s.mu.Lock()
	lasting, followed := s.lasting, maps.Clone(s.followed)
	left := slices.Concat(slices.Collect(maps.Keys(s.followed)), slices.Collect(maps.Keys(s.attended)))
	s.lasting = map[string]bool{}
	s.mu.Unlock()
	for _, ended := range followed {
		ended()
	}
	for _, session := range left {
		// Nobody is there any more who could be told that it did not end well.
		_ = session.Close()
	}
	s.watching.Wait()
	for id := range lasting {
		s.end(id)
	}
}
