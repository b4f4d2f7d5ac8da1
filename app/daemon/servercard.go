package daemon

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/server/kernel"
)

// The metadata by which clients discover the MCP faces (MCP extension io.modelcontextprotocol/server-card, SEP-2127):
// a card below each face, and a catalog that lists the cards.
const (
	catalogPath = "/.well-known/mcp/catalog.json"
	cardPath    = "/server-card" // behind the path of a face
	cardType    = "application/mcp-server-card+json"
	cardSchema  = "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json"
)

// serverCard describes one face. It does not list tools: clients request them after the sign-in.
type serverCard struct {
	Schema      string       `json:"$schema"`
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	Description string       `json:"description"`
	Title       string       `json:"title"`
	Remotes     []cardRemote `json:"remotes"`
}

type cardRemote struct {
	Type      string   `json:"type"`
	URL       string   `json:"url"`
	Revisions []string `json:"supportedProtocolVersions"`
}

// cards returns the cards by the paths of their faces.
func (d *Daemon) cards() map[string]serverCard {
	cards := map[string]serverCard{}
	for _, face := range d.faces() {
		card := serverCard{Schema: cardSchema, Name: "io.github.airlock-mcp/airlock", Version: d.opts.Version,
			Title: "Airlock", Description: "Runs code in sandboxes that calls the tools of MCP servers"}
		switch {
		case face == kernelPath || d.opts.Kernel:
			card.Name, card.Version, card.Title = "io.github.airlock-mcp/"+kernel.Name, kernel.Version,
				"Agent OS kernel by Airlock"
			card.Description = "Executes the actions of agents under named policies"
		case face == gatewayPath:
			card.Name, card.Title = "io.github.airlock-mcp/qwed-verification", "QWED verification by Airlock"
			card.Description = "Decides about the tool calls of agents by their risk, and verifies claims"
		}
		card.Remotes = []cardRemote{{"streamable-http", d.ConsoleURL() + face, server.Revisions()}}
		cards[face] = card
	}
	return cards
}

// catalogEntry is one face in the catalog.
type catalogEntry struct {
	Identifier  string `json:"identifier"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	URL         string `json:"url"`
}

// cardCatalog returns the catalog of the cards.
func (d *Daemon) cardCatalog() any {
	host := "localhost"
	if u, err := url.Parse(d.ConsoleURL()); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	entries := []catalogEntry{}
	cards := d.cards()
	for _, face := range d.faces() {
		_, name, _ := strings.Cut(cards[face].Name, "/")
		entries = append(entries, catalogEntry{"urn:air:" + host + ":" + name, cards[face].Title, cardType,
			d.ConsoleURL() + face + cardPath})
	}
	return map[string]any{"specVersion": "draft", "entries": entries}
}

// describeFaces registers the cards and their catalog. They need no authentication and are for pages of all origins.
// Their URLs do not depend on the request.
func (d *Daemon) describeFaces(mux *http.ServeMux) {
	mux.HandleFunc("GET "+catalogPath, publish("application/json", d.cardCatalog))
	for _, face := range d.faces() {
		mux.HandleFunc("GET "+face+cardPath, publish(cardType, func() any { return d.cards()[face] }))
	}
}

// publish returns a handler that answers with public metadata.
func publish(kind string, metadata func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", "GET")
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(metadata()) // an error means that the client has disconnected
	}
}
