package server

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// sessions ends what belongs to a host's conversation when the conversation is
// over: its runs, what rules know of it, and the channel through which its
// people are asked. A session of the protocol ends with its connection; that of
// a credential, under the revision without sessions, with the server.
type sessions struct {
	end      func(sessionID string)
	watching sync.WaitGroup

	mu       sync.Mutex                    // guards what follows
	followed map[*mcp.ServerSession]func() // what ends with them: those whose end is awaited
	attended map[*mcp.ServerSession]func() // and what lasts as long
	bound    map[string]binding            // by the ID of the caller's session
	lasting  map[string]bool               // IDs of sessions that end with the server
}

// binding ends a session with the credential of its last request.
type binding struct {
	credentials string
	stop        func()
}

func newSessions(end func(sessionID string)) *sessions {
	return &sessions{
		end: end, followed: map[*mcp.ServerSession]func(){}, attended: map[*mcp.ServerSession]func(){}, bound: map[string]binding{}, lasting: map[string]bool{},
	}
}

// follow ends the session of a caller when it is over. The session of a connection
// that is no HTTP ends in Serve.
func (s *sessions) follow(req mcp.Request, who caller.Caller) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || !IsHTTP(req) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.ID() == "" {
		s.lasting[who.Session] = true
		return
	}
	s.onceLocked(s.followed, session, func() { s.end(who.Session) })
}

// attend begins what lasts as long as a session, once.
func (s *sessions) attend(session *mcp.ServerSession, begin func() (end func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attended[session] != nil {
		return
	}
	s.onceLocked(s.attended, session, begin())
}

// bind has a session end with the credential of a caller, in place of an earlier one. watch
// begins that, and returns what ends the watching.
func (s *sessions) bind(session *mcp.ServerSession, who caller.Caller, watch func() (stop func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	credentials := fmt.Sprint(who.Credentials)
	earlier, known := s.bound[who.Session]
	if known && earlier.credentials == credentials {
		return
	}
	switch {
	case known:
		earlier.stop()
	case session.ID() == "": // the session is the credential's, and has no connection of its own
		s.lasting[who.Session] = true
	default:
		s.watching.Go(func() {
			_ = session.Wait() // why it ended does not matter here
			s.unbind(who.Session)
		})
	}
	s.bound[who.Session] = binding{credentials, watch()}
}

func (s *sessions) unbind(sessionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, known := s.bound[sessionID]; known {
		one.stop()
		delete(s.bound, sessionID)
	}
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
	for _, one := range s.bound {
		one.stop()
	}
	s.mu.Unlock()
	for _, ended := range followed {
		ended()
	}
	for _, session := range left {
		// The client has gone: it cannot be told that this did not end well.
		_ = session.Close()
	}
	s.watching.Wait()
	for id := range lasting {
		s.end(id)
	}
}
