package upstream

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Replace connects the servers of configs in the background, as Start does, and disconnects those
// that had their IDs and those with the IDs in removed. New calls use the new connections at once.
// A call in flight is finished over its old connection, which ends then. If one of the
// configurations is invalid, nothing changes.
func (s *Set) Replace(ctx context.Context, configs []Config, removed []string) error {
	var made []*server
	for _, c := range configs {
		if err := c.Check(); err != nil {
			return err
		}
		made = append(made, newServer(c.withDefaults(), s.opts, s.spawn, s.cache))
	}
	for _, server := range made {
		server.restore()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	for _, id := range removed {
		s.retireLocked(id)
	}
	for _, server := range made {
		s.retireLocked(server.config.ID)
		s.servers[server.config.ID] = server
		server.startInBackground(ctx)
	}
	return nil
}

// Drain is Close, after the calls in flight.
func (s *Set) Drain() error {
	s.mu.Lock()
	for id := range maps.Clone(s.servers) {
		s.retireLocked(id)
	}
	s.mu.Unlock()
	s.ending.Wait()
	return s.Close()
}

// Restart ends the connection of a server and opens another one, as Replace does.
func (s *Set) Restart(ctx context.Context, serverID string) error {
	server, ok := s.find(serverID)
	if !ok {
		return errNoServer(serverID)
	}
	return s.Replace(ctx, []Config{server.config}, nil)
}

// Log returns what is kept of the stderr of a server's newest process: the first and the last lines,
// without the server's credentials.
func (s *Set) Log(serverID string) ([]string, error) {
	server, ok := s.find(serverID)
	if !ok {
		return nil, errNoServer(serverID)
	}
	process := server.process.Load()
	if process == nil {
		return []string{}, nil
	}
	return server.config.hideAll(process.stderrLines()), nil
}

// retireLocked removes a server from the set and closes it after its last call.
func (s *Set) retireLocked(id string) {
	server, ok := s.servers[id]
	if !ok {
		return
	}
	delete(s.servers, id)
	s.retired[server] = struct{}{}
	s.ending.Go(func() {
		server.calls.Wait()
		server.close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.retired, server)
	})
}

// find returns a server that is not retired.
func (s *Set) find(id string) (*server, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	server, ok := s.servers[id]
	return server, ok
}

// use is find for a call. The caller must call done after the call.
func (s *Set) use(id string) (_ *server, done func(), ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	server, ok := s.servers[id]
	if !ok {
		return nil, nil, false
	}
	server.calls.Add(1)
	return server, server.calls.Done, true
}

// all returns the servers that are not retired, by ID.
func (s *Set) all() []*server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.servers),
		func(a, b *server) int { return cmp.Compare(a.config.ID, b.config.ID) })
}
