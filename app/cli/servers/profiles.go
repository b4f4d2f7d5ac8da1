package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/catalog"
)

// Profiles is airlock profiles.
type Profiles struct {
	verb.ToolsFlags
	Name string `arg:"" optional:"" help:"Only this profile."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// profiles is the output of --json.
type profiles struct {
	Profiles []shownProfile  `json:"profiles"`
	Clients  []client        `json:"clients"`
	Missing  []missingServer `json:"missing"`
}

// shownProfile lists the servers and tools that clients with a profile see.
type shownProfile struct {
	Name    string          `json:"name"` // empty for clients without a profile, if no profile is the default
	Default bool            `json:"default"`
	Servers []profileServer `json:"servers"`
}

// profileServer is a server with the tools that a client sees.
type profileServer struct {
	ServerID string   `json:"server_id"`
	Tools    []string `json:"tools"`
	Hidden   int      `json:"hidden_tools"` // number of tools that the profile hides
	Problem  string   `json:"problem,omitempty"`
}

// client is a host whose file registers Airlock.
type client struct {
	Host    string `json:"host"`
	Title   string `json:"title"`
	Path    string `json:"path"`
	Config  string `json:"config"`  // named in the host's file; empty if it names none
	Profile string `json:"profile"` // named in the host's file, else the default profile
	Problem string `json:"problem,omitempty"`
}

// Run prints the servers and tools that each profile shows, and the hosts that use it.
func (v *Profiles) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if v.Name != "" {
		if _, err := verb.ProfileName(c, v.Name); err != nil {
			return err
		}
	}
	shown, snapshot := profiles{Clients: clients(c), Missing: []missingServer{}}, &catalog.Snapshot{}
	if len(c.Servers) > 0 {
		if snapshot, err = v.Ask(ctx, c, "", s.Err); err != nil {
			return err
		}
	}
	for _, missing := range snapshot.Missing("") {
		shown.Missing = append(shown.Missing, missingServer{missing.ServerID, missing.Problem})
	}
	shown.Profiles = shownProfiles(c, snapshot)
	if v.Name != "" {
		shown.Profiles = slices.DeleteFunc(shown.Profiles, func(p shownProfile) bool { return p.Name != v.Name })
		shown.Clients = slices.DeleteFunc(shown.Clients, func(c client) bool { return c.Profile != v.Name })
	}
	if v.JSON {
		return verb.PrintLine(s.Out, shown)
	}
	if len(c.Profiles) == 0 {
		fmt.Fprintln(s.Err, "airlock: no profile is configured, so every client sees every tool\nhint: write "+
			"profiles: {NAME: {servers: {SERVER: [TOOL]}}} in the configuration, then airlock mcp --profile NAME")
	}
	return verb.Paged(s, func(w io.Writer) error { return printProfiles(w, shown) })
}

// shownProfiles returns the tools that clients see with each profile, and without a profile.
func shownProfiles(c *config.Config, snapshot *catalog.Snapshot) []shownProfile {
	shown := []shownProfile{}
	if c.DefaultProfile == "" {
		shown = append(shown, shownProfile{Default: true, Servers: profileServers(snapshot, nil)})
	}
	for _, p := range c.Profiles {
		shown = append(shown, shownProfile{p.Name, p.Name == c.DefaultProfile, profileServers(snapshot, p)})
	}
	return shown
}

func profileServers(snapshot *catalog.Snapshot, p *catalog.Profile) []profileServer {
	servers := []profileServer{}
	for _, server := range snapshot.Within(p).Servers() {
		shown := profileServer{ServerID: server.ID, Tools: []string{}, Problem: catalog.Clean(server.Problem)}
		for _, tool := range server.Tools {
			shown.Tools = append(shown.Tools, tool.Name)
		}
		whole, _ := snapshot.Server(server.ID)
		shown.Hidden = len(whole.Tools) - len(server.Tools)
		servers = append(servers, shown)
	}
	return servers
}

// clients returns the hosts whose files name this configuration or no configuration.
func clients(c *config.Config) []client {
	found := []client{}
	environment, err := verb.HostEnvironment()
	if err != nil {
		return found
	}
	files, err := hosts.Look(environment, nil, true)
	if err != nil {
		return found
	}
	for _, file := range files {
		if !file.Registered {
			continue
		}
		path, name := verb.FlagValue(file.Args, "--config"), verb.FlagValue(file.Args, "--profile")
		if path != "" && (c.File == "" || filepath.Clean(path) != c.File) {
			continue
		}
		one := client{Host: file.Host.ID, Title: file.Host.Title, Path: file.Path, Config: path, Profile: name}
		profile, err := c.Profile(name)
		var unknown *config.ProfileError
		switch {
		case errors.As(err, &unknown):
			one.Problem = unknown.Error()
		case profile != nil:
			one.Profile = profile.Name
		}
		found = append(found, one)
	}
	return found
}

// printProfiles prints a table for each profile. A row has a server, the number of visible tools
// and their names.
func printProfiles(w io.Writer, shown profiles) error {
	paint := verb.PainterFor(w)
	for i, p := range shown.Profiles {
		if i > 0 {
			fmt.Fprintln(w)
		}
		title := p.Name
		switch {
		case title == "":
			title = "without a profile"
		case p.Default:
			title += " (default)"
		}
		fmt.Fprintln(w, paint.Paint(verb.Bold, title))
		if len(p.Servers) == 0 {
			fmt.Fprintln(w, "  no tools")
		}
		var t verb.Table
		for _, server := range p.Servers {
			t.Add(verb.Text("  "+verb.OneLine(server.ServerID, 60), verb.Cyan), verb.Text(seenOf(server), verb.Plain),
				verb.Text(whichTools(server), verb.Dim))
		}
		if err := t.Write(w); err != nil {
			return err
		}
		for _, client := range shown.Clients {
			if client.Profile == p.Name && client.Problem == "" {
				fmt.Fprintf(w, "  used by %s (%s)\n", client.Title, client.Path)
			}
		}
	}
	for _, client := range shown.Clients {
		if client.Problem != "" {
			fmt.Fprintf(w, "\n%s (%s) %s: Airlock will not start there\n", client.Title, client.Path,
				paint.Paint(verb.Red, client.Problem))
		}
	}
	return nil
}

// seenOf returns the number of visible tools of a server as text.
func seenOf(server profileServer) string {
	switch {
	case server.Problem != "":
		return "missing"
	case server.Hidden == 0:
		return "all of " + verb.Counted(len(server.Tools), "tool")
	}
	return fmt.Sprintf("%d of %s", len(server.Tools), verb.Counted(len(server.Tools)+server.Hidden, "tool"))
}

// whichTools returns the names of the visible tools, or why the server is missing.
func whichTools(server profileServer) string {
	if server.Problem != "" {
		return verb.OneLine(server.Problem, 1000)
	}
	var names []string
	for _, name := range server.Tools {
		names = append(names, verb.OneLine(name, 128))
	}
	return strings.Join(names, ", ")
}
