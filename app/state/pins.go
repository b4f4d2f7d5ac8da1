package state

import (
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Pins returns the definitions that were seen before. Each configuration file has its own: two may use one name for
// different servers. The nodes of a cluster have the same servers.
func (s *State) Pins(c *config.Config) *pins.Store {
	scope := pinScope(c)
	former := filepath.Join(store.Pins(s.home), scope+".json")
	if s.IsShared() {
		scope = ""
	}
	return pins.NewStore(s.Open, scope, former)
}

// pinScope returns the scope of the pins of a configuration file on a single machine.
func pinScope(c *config.Config) string {
	return strings.TrimPrefix(canon.Digest([]byte(c.File)), "sha256:")[:16]
}
