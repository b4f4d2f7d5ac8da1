package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// The values of Server.Transport.
const (
	TransportStdio = "stdio" // a program that Airlock starts
	TransportHTTP  = "http"  // MCP over streamable HTTP
	TransportSSE   = "sse"   // the HTTP transport of MCP 2024-11-05
)

// Server is one upstream MCP server. It is printed as its ID and transport only, because its
// arguments, address, environment and headers may hold secrets.
type Server struct {
	ID        string // the key under mcpServers
	Transport string // one of the Transport constants

	Command string                  // the program, for stdio
	Args    []string                // its arguments
	Env     map[string]secret.Value // set for the program in addition to a minimal environment
	Cwd     string                  // absolute; empty means the working directory of Airlock

	URL     string                  // the endpoint, for http and sse
	Headers map[string]secret.Value // sent with every request

	StartTimeout time.Duration // from start to the end of the first tools/list
	CallTimeout  time.Duration // one tool call; by default the timeout for all servers

	// References are the references of env and headers, by name. They are set if the
	// values were replaced by the credentials.
	References map[string]string

	Settings Settings

	line, column int
}

// Settings are the operator's settings for one server, from the key servers.
type Settings struct {
	// TrustAnnotations allows the server's annotations to lower a tool's risk.
	TrustAnnotations bool
	Allow            []string // tools that may be called without asking; "*" means all
	Deny             []string // tools that may never be called; overrides Allow
	// Secrets names variables, headers and flags whose values are always credentials, Public
	// those whose values never are.
	Secrets, Public []string
	// Personal overrides how personal data in the server's answers is redacted.
	Personal Personal
	Rate     Rate // of its calls, over all runs; zero: the rate for all servers
	Tools    map[string]Tool
	// OAuth configures the sign-in to the server; nil means that it is discovered.
	OAuth *OAuth
	// Elicitation lets the server ask the person behind a call.
	Elicitation bool
	// Apps is the grant for the MCP Apps of the server.
	Apps catalog.AppGrant
	// Sandbox contains a stdio server; nil means that it runs on the host, with the rights of Airlock's user.
	Sandbox *Containment
}

// Tool holds the operator's settings for one tool.
type Tool struct {
	// Risk overrides the tool's annotations: "read", "write", "destructive", or empty for no
	// decision.
	Risk string
	Rate Rate // of its calls, over all runs; zero: the rate for all tools
}

// String returns the ID and the kind of server.
func (s Server) String() string { return fmt.Sprintf("%s (%s)", s.ID, s.Transport) }

// GoString is equal to String, so that %#v prints no secrets.
func (s Server) GoString() string { return s.String() }

// LogValue returns the value of String.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON returns the value of String as JSON.
func (s Server) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
