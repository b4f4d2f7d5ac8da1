package agents

import (
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Fingerprint returns the digest of an action. Equal actions have equal digests, however their JSON
// was written.
func (a Action) Fingerprint() (string, error) { return digest(a) }

// fingerprintOn returns the digest of an action on a state of the world.
func (a Action) fingerprintOn(state string) (string, error) {
	return digest(struct {
		Action
		State string `json:"pre_action_state_hash"`
	}{a, state})
}

func digest(v any) (string, error) {
	raw, err := canon.Marshal(v)
	if err != nil {
		return "", err
	}
	return canon.Digest(raw), nil
}
