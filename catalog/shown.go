package catalog

import (
	"encoding/json"
	"sync"
)

// Shown returns all servers as they may be described to a model, with every
// text that is flagged cleaned as Definition cleans it: wrappers are made from
// these. Names and whatever else a call needs are unchanged; digests are those
// of what is shown.
func (s *Snapshot) Shown() []Server {
	s.shownOnce.Do(func() {
		s.shown = make([]Server, len(s.servers))
		var working sync.WaitGroup
		for i := range s.servers {
			working.Go(func() { s.shown[i] = s.shownServer(s.servers[i]) })
		}
		working.Wait()
	})
	return s.shown
}

func (s *Snapshot) shownServer(server Server) Server {
	tools := make([]Tool, len(server.Tools))
	for i := range server.Tools {
		tools[i] = s.shownTool(&server.Tools[i])
	}
	server.Tools, server.Problem = tools, Clean(server.Problem)
	return server
}

func (s *Snapshot) shownTool(tool *Tool) Tool {
	if tool.Withheld {
		return *tool
	}
	if len(s.Flags(tool.ServerID, tool.Name)) == 0 {
		return *tool
	}
	var shown Tool
	definition, err := s.Definition(tool.ServerID, tool.Name)
	if err == nil {
		shown, err = ParseTool(tool.ServerID, definition.JSON)
	}
	if err != nil { // a schema whose flagged words were part of its meaning
		return Tool{ServerID: tool.ServerID, Name: tool.Name, Description: withheld, InputSchema: json.RawMessage(`{"type":"object"}`)}
	}
	return shown
}
