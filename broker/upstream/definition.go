package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
)

// Digest returns the digest of a tool's definition as its server gives it, not as
// a cache has it: a server that is not connected is connected first, and again
// asks one that is for its list. Without that, a server whose list is not of just now is asked for
// it meanwhile, so that the next call sees what has changed. It is empty when the server has no such tool.
func (s *Set) Digest(ctx context.Context, serverID, name string, again bool) (string, error) {
	server, ok := s.find(serverID)
	if !ok {
		return "", fmt.Errorf("looking at tool %q: there is no server %q", name, serverID)
	}
	if again {
		if err := server.refresh(ctx); err != nil {
			return "", err
		}
	} else if _, err := server.connected(ctx); err != nil {
		return "", fmt.Errorf("looking at tool %q of server %q: %w", name, serverID, err)
	}
	if !again {
		server.lookMeanwhile()
	}
	return server.digest(name), nil
}

// usedFor is how old a list may be while its server is called; one that took long is
// asked for less often.
const (
	usedFor   = 2 * time.Second
	usedShare = 50
)

// lookMeanwhile makes the keeper read the list if it is too old. A server may change a
// definition without a notification.
func (s *server) lookMeanwhile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) < max(usedFor, usedShare*s.took) {
		return
	}
	s.read = time.Now() // once is enough
	signal(s.announced)
}

func (s *server) digest(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]catalog.Tool{s.known.Tools, s.known.Features} {
		if i := slices.IndexFunc(list, func(t catalog.Tool) bool { return t.Name == name }); i >= 0 {
			return list[i].Digest
		}
	}
	return ""
}
