package catalog

import (
	"encoding/json"
	"sync"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Shown returns all servers as they may be described to a model, with every
// text that is flagged cleaned as Definition cleans it: wrappers are made from
// these. Names and whatever else a call needs are unchanged; digests are those
// of what is shown.
func (s *Snapshot) Shown() []Server {
	s.shownOnce.Do(func() { s.show(earlier{}) })
	return s.shown
}

// show computes the result of Shown. Results for unchanged tools are copied.
func (s *Snapshot) show(known earlier) {
	s.shown = make([]Server, len(s.servers))
	var working sync.WaitGroup
	first := 0 // the position of the server's first tool
	for i, server := range s.servers {
		begin := first
		working.Go(func() { s.shown[i] = s.shownServer(server, begin, known) })
		first += len(server.Tools)
	}
	working.Wait()
}

func (s *Snapshot) shownServer(server Server, first int, known earlier) Server {
	tools := make([]Tool, len(server.Tools))
	harmless := map[string]bool{}
	for i := range server.Tools {
		if was, same := known.position(first + i); same {
			tools[i] = *known.shown[was]
		} else {
			tools[i] = s.shownTool(&server.Tools[i], harmless)
		}
	}
	server.Tools, server.Problem = tools, Clean(server.Problem)
	return server
}

// shownTool uses and fills harmless: see allHarmless.
func (s *Snapshot) shownTool(tool *Tool, harmless map[string]bool) Tool {
	if tool.Withheld || allHarmless(tool.Raw, harmless) && len(s.imitations(tool)) == 0 {
		return *tool
	}
	var shown Tool
	definition, err := s.Definition(tool.ServerID, tool.Name)
	if err == nil {
		shown, err = ParseTool(tool.ServerID, definition.JSON)
	}
	if err != nil { // a schema whose flagged words were part of its meaning
		return Tool{ServerID: tool.ServerID, Name: tool.Name, Description: withheld,
			InputSchema: json.RawMessage(`{"type":"object"}`)}
	}
	return shown
}

// allHarmless reports whether all strings of a JSON value are harmless, keys included.
// known caches strings in their JSON form that were found harmless: the tools of one server
// repeat many descriptions of parameters.
func allHarmless(raw []byte, known map[string]bool) bool {
	for begin := 0; begin < len(raw); begin++ {
		if raw[begin] != '"' {
			continue
		}
		end := begin + 1
		for ; end < len(raw) && raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		literal := raw[begin:min(end+1, len(raw))]
		begin = end
		if known[string(literal)] {
			continue
		}
		var text string
		if strictjson.UnmarshalOpen(literal, &text) != nil || len(inspect("", text)) > 0 {
			return false
		}
		known[string(literal)] = true
	}
	return true
}
