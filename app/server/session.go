package server

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// sessions cleans up when a session ends: its runs, the state of rules, and the channel for
// questions to its people. A protocol session ends with its connection. The session of a
// credential, in the revision without sessions, ends with the server.
type sessions struct {
	end      func(sessionID string)
	watching sync.WaitGroup
	closing  chan struct{} // closed by close
	closeOne sync.Once

	mu       sync.Mutex                    // guards the fields below
	followed map[*mcp.ServerSession]func() // the cleanup of each session, by follow
	attended map[*mcp.ServerSession]func() // the cleanup of each session, by attend
	bound    map[string]binding            // by the ID of the caller's session
	lasting  map[string]bool               // IDs of sessions that end with the server
}

// binding ends a session when the credential of its last request ends.
type binding struct {
	credentials string
	stop        func()
	session     *mcp.ServerSession
}

func newSessions(end func(sessionID string)) *sessions {
	return &sessions{
		end: end, followed: map[*mcp.ServerSession]func(){}, attended: map[*mcp.ServerSession]func(){},
		bound: map[string]binding{}, lasting: map[string]bool{}, closing: make(chan struct{}),
	}
}

// follow cleans up the caller's session when it has ended. Sessions of connections other than
// HTTP are cleaned up in ServeConnection.
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

// attend calls begin once for each session, and end when the session has ended.
func (s *sessions) attend(session *mcp.ServerSession, begin func() (end func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attended[session] != nil {
		return
	}
	s.onceLocked(s.attended, session, begin())
}

// bind makes a session end with the credential of a caller. It replaces an earlier binding.
// watch begins to watch the credential and returns a function that stops watching.
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
	case session.ID() == "": // the session belongs to the credential and has no connection
		s.lasting[who.Session] = true
	default:
		s.watching.Go(func() {
			_ = session.Wait() // the reason does not matter
			s.unbind(who.Session)
		})
	}
	s.bound[who.Session] = binding{credentials, watch(), session}
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
		// The error is ignored; Serve reports it.
		_ = session.Wait()
		ended()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(known, session)
	})
}

// close ends every session, including those that hosts have left open over HTTP. It ends the
// runs first, because the SDK waits for the requests of a session that it ends, and these wait
// for their runs.
func (s *sessions) close() {
	s.closeOne.Do(func() { close(s.closing) })
	s.mu.Lock()
	lasting, followed := s.lasting, maps.Clone(s.followed)
	left := slices.Concat(slices.Collect(maps.Keys(s.followed)), slices.Collect(maps.Keys(s.attended)))
	s.lasting = map[string]bool{}
	for _, one := range s.bound {
		one.stop()
		if one.session.ID() != "" {
			left = append(left, one.session)
		}
	}
	s.mu.Unlock()
	for _, ended := range followed {
		ended()
	}
	for _, session := range left {
		// An error is ignored: the client has disconnected.
		_ = session.Close()
	}
	s.watching.Wait()
	for id := range lasting {
		s.end(id)
	}
}
