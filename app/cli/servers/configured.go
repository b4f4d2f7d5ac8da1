package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Servers are the verbs that list and change the configured servers.
type Servers struct {
	List    serversListVerb    `cmd:"" help:"List the servers of the configuration, and their states in a running daemon."`
	Search  serversSearchVerb  `cmd:"" help:"Search the MCP registry of the configuration for servers."`
	Add     serversAddVerb     `cmd:"" help:"Add a server; its tools are withheld until you have accepted them."`
	Remove  serversRemoveVerb  `cmd:"" help:"Remove a server from the configuration; its sign-ins stay."`
	Enable  serversEnableVerb  `cmd:"" help:"Use a disabled server again."`
	Disable serversDisableVerb `cmd:"" help:"Leave a server out, and keep its entry."`
	Learn   serversLearnVerb   `cmd:"" help:"Try a contained server for some minutes, record what it opens and connects to, and propose its sandbox."`
	Restart serversRestartVerb `cmd:"" help:"Connect the running daemon to a server anew."`
	Logs    serversLogsVerb    `cmd:"" help:"Print what a server of the running daemon wrote to stderr: its first and last lines."`
}

type serversListVerb struct {
	verb.ConfigFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// listedServer is one server in the output of --json.
type listedServer struct {
	ID   string `json:"id"`
	Node string `json:"node,omitempty"` // of a cluster
	// State is disabled, connected, starting, missing, unreachable, waiting if the running daemon does not have it yet,
	// or - without a daemon.
	State string `json:"state"`
	Place string `json:"place,omitempty"`
	Tools int    `json:"tools"`
	// Withheld is how many definitions of tools, resources, prompts and of the server itself wait until a person has
	// seen them.
	Withheld int    `json:"withheld"`
	Problem  string `json:"problem,omitempty"`
	// Contained is "contained", "not contained" for a program with the rights of Airlock's user, or "" for an address.
	Contained string   `json:"contained,omitempty"`
	MayReach  []string `json:"may_reach,omitempty"` // the hosts of its configuration; the policies decide
	Mounts    []string `json:"mounts,omitempty"`
	Reached   []string `json:"reached,omitempty"` // the hosts that it has connected to since the daemon started
}

// contain sets what is known about the sandbox of a server.
func (l *listedServer) contain(server config.Server, running *upstreams.Containment) {
	box := upstreams.ContainmentOf(server)
	switch {
	case box != nil:
		l.Contained, l.MayReach, l.Mounts = "contained", box.MayReach, box.Mounts
	case server.Command != "":
		l.Contained = "not contained"
	}
	if running == nil {
		return
	}
	for _, host := range running.Reached {
		if host.Connections > 0 {
			l.Reached = append(l.Reached, host.Host)
		}
	}
}

// box describes the sandbox in a few words.
func (l *listedServer) box() string {
	text := l.Contained
	if len(l.MayReach) > 0 {
		text += ", may reach " + strings.Join(l.MayReach, " ")
	}
	if len(l.Reached) > 0 {
		text += ", reached " + strings.Join(l.Reached, " ")
	}
	return text
}

// Run lists the servers, sorted by name, and then the disabled ones.
func (v *serversListVerb) Run(s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	running, err := daemon.AllServers()
	if err != nil && !errors.Is(err, join.ErrNone) {
		return err
	}
	served := err == nil
	missing := listing.Missing(running.Unanswered)
	if missing != "" && !v.JSON {
		fmt.Fprintln(s.Err, "airlock: "+missing)
	}
	list := []listedServer{}
	for _, server := range c.Servers {
		found := false
		for _, state := range running.Servers {
			if state.ID != server.ID {
				continue
			}
			found = true
			one := listedServer{ID: server.ID, Node: state.Node, State: state.Word(), Place: state.Place,
				Tools: state.Tools, Withheld: state.Withheld, Problem: state.Problem + state.Unreachable}
			one.contain(server, state.Contained)
			list = append(list, one)
		}
		if !found {
			one := listedServer{ID: server.ID, State: "-"}
			if served {
				one.State = "waiting"
			}
			one.contain(server, nil)
			list = append(list, one)
		}
	}
	for _, id := range c.Disabled() {
		list = append(list, listedServer{ID: id, State: "disabled"})
	}
	waiting := slices.ContainsFunc(list, func(one listedServer) bool { return one.State == "waiting" })
	if v.JSON {
		all := map[string]any{"servers": list}
		if missing != "" {
			all["unanswered"], all["problem"] = running.Unanswered, missing
		}
		return verb.PrintLine(s.Out, all)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(
			s.Err, "airlock: no server is configured\nhint: airlock servers add NAME -- COMMAND ARGUMENT...")
		return err
	}
	err = verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, one := range list {
			about := verb.Counted(one.Tools, "tool")
			if one.Withheld > 0 {
				about += fmt.Sprintf(", %s withheld", verb.Counted(one.Withheld, "definition"))
			}
			if slices.Contains([]string{"-", "disabled", "waiting"}, one.State) {
				about = ""
			}
			name := verb.Clean(one.ID)
			if one.Node != "" {
				name += " at " + verb.Clean(one.Node)
			}
			t.Add(verb.Text(name, verb.Plain), verb.Text(one.State, verb.Plain),
				verb.Text(about, verb.Plain), verb.Text(verb.Clean(one.Place), verb.Dim),
				verb.Text(verb.Clean(one.box()), verb.Dim),
				verb.Text(verb.OneLine(one.Problem, 80), verb.Red))
		}
		return t.Write(w)
	})
	if err == nil && waiting {
		sayWaiting(s)
	}
	return err
}

// sayWaiting prints why the daemon does not have a server of the file yet.
func sayWaiting(s *verb.Streams) {
	why, hint := "airlock serve has another configuration", "airlock status"
	if status, err := daemon.Ask(); err == nil && status.Pending != "" {
		why, hint = status.Pending, status.PendingHint
	}
	fmt.Fprintf(s.Err, "airlock: servers wait: %s\nhint: %s\n", verb.Clean(why), verb.Clean(hint))
}

type serversAddVerb struct {
	verb.ConfigFlag
	Name    string   `arg:"" help:"The name of the server. Without a program and an address: that of a server in the MCP registry, as in io.github.acme/weather or io.github.acme/weather@1.2.0."`
	Command []string `arg:"" optional:"" help:"The program and its arguments, behind --."`
	URL     string   `name:"url" placeholder:"URL" help:"The address of a server over HTTP, in place of a program."`
	Env     []string `placeholder:"NAME[=VALUE]" help:"A variable of the program. Without a value, Airlock's own variable of this name is passed on."`
	Header  []string `placeholder:"NAME=VALUE" help:"A header of requests to the address."`
	Set     []string `placeholder:"NAME=VALUE" help:"An argument that a server of the registry takes."`
	As      string   `placeholder:"NAME" help:"The name of a server of the registry here. By default, what is behind the slash."`
	Yes     bool     `short:"y" help:"Add a server of the registry without asking."`
}

// Run adds a server to the configuration file.
func (v *serversAddVerb) Run(ctx context.Context, s *verb.Streams) error {
	const usage = "airlock servers add NAME -- COMMAND ARGUMENT..., or airlock servers add NAME --url URL"
	entry := &config.ServerEntry{URL: v.URL, Env: map[string]string{}, Headers: map[string]string{}}
	if v.URL == "" && len(v.Command) == 0 && strings.Contains(v.Name, "/") {
		return v.addPublished(ctx, s)
	}
	if (v.URL == "") == (len(v.Command) == 0) || v.As != "" || len(v.Set) > 0 {
		return verb.Usage("a server has either a program or an address, or is in the MCP registry",
			usage+", or airlock servers add NAMESPACE/NAME")
	}
	if len(v.Command) > 0 {
		entry.Command, entry.Args = v.Command[0], v.Command[1:]
	}
	for _, pair := range v.Env {
		name, value, given := strings.Cut(pair, "=")
		if !given {
			value = "${" + name + "}"
		}
		entry.Env[name] = value
	}
	for _, pair := range v.Header {
		name, value, given := strings.Cut(pair, "=")
		if !given {
			return verb.Usage(fmt.Sprintf("the header %q has no value", name), usage)
		}
		entry.Headers[name] = value
	}
	return edit(ctx, s, v.ConfigFlag, config.ServerEdit{ID: v.Name, Add: entry})
}

// namedServer are the arguments of verbs about one configured server.
type namedServer struct {
	verb.ConfigFlag
	Name string `arg:"" help:"The name of the server."`
}

type serversRemoveVerb struct{ namedServer }

// Run removes a server from the configuration file.
func (v *serversRemoveVerb) Run(ctx context.Context, s *verb.Streams) error {
	return edit(ctx, s, v.ConfigFlag, config.ServerEdit{ID: v.Name, Remove: true})
}

type serversEnableVerb struct{ namedServer }

// Run enables a server in the configuration file.
func (v *serversEnableVerb) Run(ctx context.Context, s *verb.Streams) error {
	return edit(ctx, s, v.ConfigFlag, config.ServerEdit{ID: v.Name, Disabled: new(bool)})
}

type serversDisableVerb struct{ namedServer }

// Run disables a server in the configuration file.
func (v *serversDisableVerb) Run(ctx context.Context, s *verb.Streams) error {
	disabled := true
	return edit(ctx, s, v.ConfigFlag, config.ServerEdit{ID: v.Name, Disabled: &disabled})
}

// edit changes the configuration file. A running daemon notices the change.
func edit(ctx context.Context, s *verb.Streams, f verb.ConfigFlag, change config.ServerEdit) error {
	c, err := f.Load(io.Discard)
	if err != nil {
		return err
	}
	confirmed, err := rules.EditServer(ctx, c, change, func() error {
		return verb.GuardedIn(c, "changing the servers")
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Out, "changed %s\n", verb.Clean(c.File)); err != nil {
		return err
	}
	switch {
	case !confirmed:
		fmt.Fprintf(s.Err, "airlock: the file has other changes that nobody has confirmed, so nothing of it is in "+
			"force yet\nhint: airlock trust %s\n", visible.Word(c.File))
	case change.Add != nil:
		fmt.Fprintf(s.Err, "airlock: the tools of %s are withheld until you have seen them\n"+
			"hint: airlock tools diff, then airlock tools accept %s\n", catalog.Quote(change.ID),
			visible.Word(change.ID))
	}
	return nil
}

type serversRestartVerb struct{ namedServer }

// Run restarts the connection of the running daemon to a server.
func (v *serversRestartVerb) Run(s *verb.Streams) error {
	if err := daemon.RestartServer(v.Name); err != nil {
		return verb.NoDaemon(err)
	}
	_, err := fmt.Fprintf(s.Err, "airlock: %s is connected anew; calls under way are finished first\n",
		verb.Clean(v.Name))
	return err
}

type serversLogsVerb struct{ namedServer }

// Run prints the log of a server.
func (v *serversLogsVerb) Run(s *verb.Streams) error {
	text, err := daemon.ServerLog(v.Name)
	if err != nil {
		return verb.NoDaemon(err)
	}
	if len(text) == 0 {
		_, err := fmt.Fprintf(s.Err, "airlock: %s has written nothing to stderr, or runs elsewhere\n",
			verb.Clean(v.Name))
		return err
	}
	return verb.Paged(s, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, verb.Clean(string(text)))
		return err
	})
}
