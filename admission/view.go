package admission

import (
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// View returns the part of the snapshot that the caller's profile includes. It returns an error if
// the profile does not exist.
func (s *Service) View(who caller.Caller, snapshot *catalog.Snapshot) (*catalog.Snapshot, error) {
	if who.Profile == "" {
		return snapshot, nil
	}
	profile, known := s.Rules().Profiles[who.Profile]
	if !known {
		return nil, fmt.Errorf("there is no profile %q", who.Profile)
	}
	return snapshot.Within(profile), nil
}
