package code

import (
	"context"
	_ "embed" // for instructions.md
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

//go:embed instructions.md
var instructionsText string

// The statements of the instructions about the network, without hosts that code may ask for and with some.
const (
	withoutNetwork = "There is no network and there are no credentials: only tools reach outside."
	withNetwork    = "Only tools and hosts of the argument network are reachable; no credentials."
)

// instructions returns the instructions with the names of the current servers.
func (s *Server) instructions() string {
	text := instructions(s.upstream())
	if s.network {
		text = strings.Replace(text, withoutNetwork, withNetwork, 1)
	}
	return text
}

// maxInstructions is the length of instructions that every host shows to its model, in characters.
const maxInstructions = 2048

// instructions returns the instructions for models: search, read, write code. The names of the
// servers follow, up to maxInstructions.
func instructions(serverIDs []string) string {
	text := strings.TrimSpace(instructionsText)
	if len(serverIDs) == 0 {
		return text
	}
	const more = ", …"
	names := "\nServers: " + serverIDs[0]
	if len(text)+len(names)+len(more) > maxInstructions {
		return text
	}
	for _, id := range serverIDs[1:] {
		if len(text)+len(names)+len(", "+id)+len(more) > maxInstructions {
			return text + names + more
		}
		names += ", " + id
	}
	return text + names
}

// instructionsTimeout is how long a host that connects waits for the lists of an earlier start to be read.
const instructionsTimeout = 100 * time.Millisecond

// withServers appends the instructions of the servers, as long as they fit into maxInstructions. The others are in the
// answers of get_tool_definition.
func (s *Server) withServers(ctx context.Context, req mcp.Request, text string) string {
	who := s.Caller(ctx, req)
	if !who.Known() {
		return text
	}
	ready := make(chan *catalog.Snapshot, 1)
	go func() { ready <- s.tools.Snapshot(who) }()
	select {
	case snapshot := <-ready:
		for _, server := range snapshot.Servers() {
			about := aboutServer(snapshot, server.ID)
			if about != "" && len(text)+len(about)+2 <= maxInstructions {
				text += "\n\n" + about
			}
		}
	case <-time.After(instructionsTimeout):
	case <-ctx.Done():
	}
	return text
}

// maxAbout is how many characters of the instructions of a server an answer has.
const maxAbout = 4000

// aboutServer returns the instructions of a server for the model, or "".
func aboutServer(snapshot *catalog.Snapshot, serverID string) string {
	about := truncate.Characters(snapshot.About(serverID), maxAbout)
	if about == "" {
		return ""
	}
	return fmt.Sprintf("Instructions of the server %s for its tools:\n%s", quote(serverID), about)
}
