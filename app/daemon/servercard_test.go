package daemon

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 31: a client finds the faces from the catalog of the host, without a token and from any page. A card says
// the same as its face.
func TestCatalogAndCards(t *testing.T) {
	s := serve(t, `{}`)
	s.daemon.opts.URL = s.url
	var catalog struct {
		SpecVersion string
		Entries     []struct{ Identifier, DisplayName, Type, URL string }
	}
	public(t, s.url+catalogPath, "application/json", &catalog)
	if catalog.SpecVersion != "draft" || len(catalog.Entries) != 3 {
		t.Fatalf("got %+v, want the three faces", catalog)
	}
	for _, entry := range catalog.Entries {
		var card serverCard
		public(t, entry.URL, cardType, &card)
		if entry.Type != cardType || entry.DisplayName != card.Title ||
			!strings.HasPrefix(entry.Identifier, "urn:air:127.0.0.1:") {
			t.Errorf("got the entry %+v for %+v", entry, card)
		}
		if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(card.Name) ||
			len(card.Description) > 100 || card.Schema != cardSchema || card.Version == "" || len(card.Remotes) != 1 {
			t.Errorf("got %+v, which the schema of cards does not allow", card)
		}
		token := s.token("ann", "run", "agents")
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: card.Remotes[0].URL,
			HTTPClient: testenv.Bearer(token)}, nil)
		if err != nil {
			t.Fatalf("%s: %v", card.Remotes[0].URL, err)
		}
		info := session.InitializeResult()
		if info.ServerInfo.Title != card.Title || info.ServerInfo.Version != card.Version ||
			!strings.HasSuffix(card.Name, "/"+info.ServerInfo.Name) ||
			!slices.Contains(card.Remotes[0].Revisions, info.ProtocolVersion) {
			t.Errorf("got the card %+v for the face %+v, %s", card, info.ServerInfo, info.ProtocolVersion)
		}
		session.Close()
	}
}

// The URLs of the metadata are those of the configuration, whatever host a request names.
func TestCardsDoNotFollowTheRequest(t *testing.T) {
	s := serve(t, `serve: {publicURL: "https://airlock.example/"}`)
	request, err := http.NewRequest(http.MethodGet, s.url+"/mcp"+cardPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var card serverCard
	if err := json.NewDecoder(response.Body).Decode(&card); err != nil || len(card.Remotes) != 1 ||
		card.Remotes[0].URL != "https://airlock.example/mcp" {
		t.Errorf("got %+v, %v", card, err)
	}
}

// public reads public metadata as a page of another site does.
func public(t *testing.T, address, kind string, into any) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", "https://elsewhere.example")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header; response.StatusCode != http.StatusOK || got.Get("Content-Type") != kind ||
		got.Get("Access-Control-Allow-Origin") != "*" || got.Get("Cache-Control") == "" {
		t.Fatalf("%s: got HTTP %d, %v", address, response.StatusCode, got)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
