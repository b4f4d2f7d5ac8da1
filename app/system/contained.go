package system

import (
	"github.com/airlock-mcp/airlock/app/contained"
)

// Tried returns what the server on trial has done, also after Close.
func (s *System) Tried() contained.State { return s.catalog.Contained().State(s.opts.Trial.Server) }
