package catalog

import (
	"slices"
	"strings"
	"sync"
)

// Profile selects the servers and tools that are visible to a caller. The zero value
// selects nothing. A Profile must not be changed after its first use.
type Profile struct {
	Name    string
	Servers []ProfileServers
	// Network lists the hosts that runs may ask for, as NAME:PORT, in place of those of the sandbox. nil means the
	// latter.
	Network []string
}

// ProfileServers are the servers whose IDs fit a pattern, and those of their
// tools that fit one of others.
type ProfileServers struct {
	Server Pattern
	Tools  []Pattern
}

// Pattern is a name in which each * matches any number of characters. It is case-sensitive.
type Pattern string

// IsPlain reports whether the pattern fits one name only: itself.
func (p Pattern) IsPlain() bool { return !strings.Contains(string(p), "*") }

// Fits reports whether the pattern matches the name.
func (p Pattern) Fits(name string) bool {
	parts := strings.Split(string(p), "*")
	last := len(parts) - 1
	if last == 0 {
		return name == string(p)
	}
	rest, begins := strings.CutPrefix(name, parts[0])
	if !begins {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// ShowsServer reports whether callers of the profile see anything of the server.
func (p *Profile) ShowsServer(id string) bool {
	return slices.ContainsFunc(p.Servers, func(s ProfileServers) bool { return s.Server.Fits(id) })
}

// Shows reports whether callers of the profile see the tool.
func (p *Profile) Shows(serverID, name string) bool {
	return slices.ContainsFunc(p.Servers, func(s ProfileServers) bool {
		return s.Server.Fits(serverID) && slices.ContainsFunc(
			s.Tools, func(tool Pattern) bool { return tool.Fits(name) })
	})
}

// narrowed is what a snapshot knows about those that Within made from it, and
// that it was made from.
type narrowed struct {
	profile *Profile        // nil if everything is visible
	whole   *Snapshot       // nil likewise
	prepare func(*Snapshot) // nil where Prepare was not called

	mu    sync.Mutex
	views map[*Profile]*Snapshot
}

// Within returns the snapshot as callers of the profile see it: without the
// servers and tools outside. nil is the profile that shows everything. The same
// profile gets the same snapshot each time. Flags are those of the whole
// snapshot: a tool that poses as one that is not seen stays suspicious.
func (s *Snapshot) Within(p *Profile) *Snapshot {
	if p == nil || s.profile == p {
		return s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if view, made := s.views[p]; made {
		return view
	}
	var servers []Server
	for _, server := range s.servers {
		if !p.ShowsServer(server.ID) {
			continue
		}
		hidden := func(t Tool) bool { return !p.Shows(server.ID, t.Name) }
		server.Tools = slices.DeleteFunc(slices.Clone(server.Tools), hidden)
		apps := AppURIs(slices.Concat(server.Tools, server.Features), nil) // a tool is shown with its app
		server.Features = slices.DeleteFunc(slices.Clone(server.Features), func(f Tool) bool {
			return hidden(f) && (f.Kind != KindResource || !slices.Contains(apps, f.Identifier()))
		})
		servers = append(servers, server)
	}
	view, err := NewSnapshot(servers)
	if err != nil {
		panic(err) // a filtered snapshot is also a snapshot
	}
	view.profile, view.whole = p, s
	if s.prepare != nil {
		s.prepare(view)
	}
	if s.views == nil {
		s.views = map[*Profile]*Snapshot{}
	}
	s.views[p] = view
	return view
}
