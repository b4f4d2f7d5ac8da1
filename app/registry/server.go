package registry

import (
	"fmt"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// Latest is the version of the newest one.
const Latest = "latest"

// The states of a server in a registry.
const (
	Deprecated = "deprecated"
	Deleted    = "deleted"
)

// Server is a version of a server, as its publisher describes it.
type Server struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
	Repository  struct {
		URL string `json:"url"`
	} `json:"repository"`
	Packages []pack   `json:"packages"`
	Remotes  []remote `json:"remotes"`

	Status, StatusMessage string `json:"-"` // of the registry
}

// pack is a package with the program of the server.
type pack struct {
	RegistryType     string  `json:"registryType"`
	RegistryBaseURL  string  `json:"registryBaseUrl"`
	Identifier       string  `json:"identifier"`
	Version          string  `json:"version"`
	RuntimeHint      string  `json:"runtimeHint"`
	Transport        remote  `json:"transport"`
	RuntimeArguments []Input `json:"runtimeArguments"`
	PackageArguments []Input `json:"packageArguments"`
	Environment      []Input `json:"environmentVariables"`
}

// remote is an address at which the server runs.
type remote struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []Input          `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// Input is a value that the server takes: an argument, a variable of the environment or a header.
type Input struct {
	Type        string           `json:"type"` // of arguments: "positional" or "named"
	Name        string           `json:"name"`
	Hint        string           `json:"valueHint"`
	Description string           `json:"description"`
	Required    bool             `json:"isRequired"`
	Secret      bool             `json:"isSecret"`
	Value       string           `json:"value"` // fixed; may contain variables, {name}
	Default     string           `json:"default"`
	Choices     []string         `json:"choices"`
	Variables   map[string]Input `json:"variables"`
}

// checked returns the server, or an error if its name or version has another form than the schema allows.
func (f found) checked() (Server, error) {
	s := f.Server
	s.Status, s.StatusMessage = f.Meta.Official.Status, f.Meta.Official.Message
	switch {
	case len(s.Name) > maxName || !serverName.MatchString(s.Name):
		return s, fmt.Errorf("the registry answers with a server of an invalid name, %.100q", s.Name)
	case len(s.Version) > maxVersion || !serverVersion.MatchString(s.Version) || s.Version == Latest:
		return s, fmt.Errorf("the registry answers with an invalid version of %s, %.100q", s.Name, s.Version)
	}
	return s, nil
}

// offers returns packages before addresses, and what can be added first.
func (s Server) offers(nearest reach.Distance) []Offer {
	var offers, refused []Offer
	add := func(o Offer) {
		if o.Refused == "" {
			offers = append(offers, o)
		} else {
			refused = append(refused, o)
		}
	}
	for _, p := range s.Packages {
		add(p.offer())
	}
	for _, r := range s.Remotes {
		add(r.offer(nearest))
	}
	return append(offers, refused...)
}
