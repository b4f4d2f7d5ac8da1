package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/registry"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/visible"
)

type serversSearchVerb struct {
	verb.ConfigFlag
	JSON  bool     `name:"json" help:"Print JSON."`
	Words []string `arg:"" help:"Words of the server's name and description, at least one of them of its name."`
}

// published is one server in the output of --json.
type published struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Status      string `json:"status,omitempty"`
	// Kind is that of what would be added: npm, pypi, streamable-http or sse; empty if nothing can be.
	Kind      string `json:"kind,omitempty"`
	Contained bool   `json:"contained"`
	Problem   string `json:"problem,omitempty"`
}

// Run searches the registry. Servers that the configuration does not allow are left out.
func (v *serversSearchVerb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	client, err := registryOf(ctx, c)
	if err != nil {
		return err
	}
	servers, more, err := find(ctx, client, v.Words)
	if err != nil {
		return ofRegistry(c, err)
	}
	list, others := []published{}, 0
	for _, server := range servers {
		if _, ok := c.Registry.Permits(server.Name); !ok {
			others++
			continue
		}
		list = append(list, listed(client, server))
	}
	if others > 0 {
		fmt.Fprintf(s.Err, "airlock: %s left out: registry.allow does not have them\n", verb.Counted(others, "server"))
	}
	if more {
		fmt.Fprintln(s.Err, "airlock: the registry has more servers: search for a longer part of the name")
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"servers": list})
	}
	return verb.Paged(s, func(w io.Writer) error {
		var t verb.Table
		for _, one := range list {
			about := one.Kind
			if one.Contained {
				about += ", contained"
			}
			t.Add(verb.Text(one.Name, verb.Plain), verb.Text(one.Version, verb.Plain), verb.Text(about, verb.Plain),
				verb.Text(verb.OneLine(one.Description, 100), verb.Dim),
				verb.Text(strings.TrimSpace(one.Status+" "+one.Problem), verb.Red))
		}
		return t.Write(w)
	})
}

// find returns the servers that have all words in their name, title or description, and at least one of them in their
// name, which is all that a registry looks at.
func find(ctx context.Context, client *registry.Client, words []string) (servers []registry.Server, more bool,
	err error) {
	known := map[string]bool{}
	for _, word := range words {
		found, rest, err := client.Search(ctx, word)
		if err != nil {
			return nil, false, err
		}
		more = more || rest
		for _, server := range found {
			if !known[server.Name] && mentions(server, words) {
				servers = append(servers, server)
			}
			known[server.Name] = true
		}
	}
	return servers, more, nil
}

// listed describes a server by what would be added.
func listed(client *registry.Client, server registry.Server) published {
	one := published{Name: server.Name, Version: server.Version, Description: cleanText(server.Description)}
	if server.Status == registry.Deprecated {
		one.Status = server.Status
	}
	offers := client.Offers(server)
	switch {
	case len(offers) == 0:
		one.Problem = "has no package and no address"
	case offers[0].Refused != "":
		one.Problem = "cannot be added"
	default:
		one.Kind, one.Contained = offers[0].Kind, offers[0].Contained
	}
	return one
}

// mentions reports whether a server has all words.
func mentions(server registry.Server, words []string) bool {
	text := strings.ToLower(server.Name + " " + server.Title + " " + server.Description)
	for _, word := range words {
		if !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}

// cleanText returns a text of the registry as it is shown to people.
func cleanText(text string) string { return verb.OneLine(catalog.Clean(text), 300) }

// whole is cleanText without a limit, for what is executed.
func whole(text string) string { return verb.Clean(catalog.Clean(text)) }

// ofRegistry adds advice to an error of a registry.
func ofRegistry(c *config.Config, err error) error {
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return verb.WithHint(err, "airlock servers search WORDS", verb.ExitFailed)
	case errors.Is(err, registry.ErrToken):
		return verb.WithHint(err, "registry.token in the configuration is a reference to it, such as keyring:registry",
			verb.ExitFailed)
	}
	return verb.WithHint(err, "registry.url in the configuration is "+verb.Clean(c.Registry.URL), verb.ExitFailed)
}

// registryOf returns the client of the configured registry.
func registryOf(ctx context.Context, c *config.Config) (*registry.Client, error) {
	token, err := credentials.Lookup(ctx, c, "registry", c.Registry.Token)
	if err != nil {
		return nil, err
	}
	return registry.New(c.Registry.URL, token)
}

// addPublished adds a server of the registry after a person has seen what is added.
func (v *serversAddVerb) addPublished(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	name, version, err := v.permitted(c)
	if err != nil {
		return err
	}
	client, err := registryOf(ctx, c)
	if err != nil {
		return err
	}
	server, err := client.Get(ctx, name, version)
	if err != nil {
		return ofRegistry(c, err)
	}
	offers := client.Offers(server)
	if len(offers) == 0 || offers[0].Refused != "" {
		return cannotAdd(server, offers)
	}
	offer := offers[0]
	values, err := v.values()
	if err != nil {
		return err
	}
	id := v.As
	if id == "" {
		_, id, _ = strings.Cut(server.Name, "/")
	}
	entry, err := offer.Entry(values)
	if missing := (*registry.MissingError)(nil); errors.As(err, &missing) {
		return needs(s, server, missing)
	}
	if err != nil {
		return verb.Usage(err.Error(), "airlock servers add takes the values that the server asks for")
	}
	review{c.Registry.URL, id, server, offer, offers[1:], entry}.print(s.Err)
	agreed, err := agreed(s, v.Yes, "Add it?", "nobody can be asked whether to add the server",
		"airlock servers add --yes adds it")
	if err != nil || !agreed {
		return err
	}
	err = edit(ctx, s, v.ConfigFlag, config.ServerEdit{ID: id, Add: entry, Contain: offer.Contained,
		Origin: c.Registry.URL + ": " + server.Name + " " + server.Version})
	if err == nil && offer.Contained {
		fmt.Fprintf(s.Err, "airlock: %s has no network and no files yet\n"+
			"hint: airlock images build %[1]s, then airlock servers learn %[1]s finds what it needs\n", verb.Clean(id))
	}
	return err
}

// permitted returns the name and the version of the server in the registry, as the configuration allows them.
func (v *serversAddVerb) permitted(c *config.Config) (name, version string, err error) {
	name, asked, _ := strings.Cut(v.Name, "@")
	pinned, ok := c.Registry.Permits(name)
	const advice = "a person who may change the configuration adds it to registry.allow"
	switch {
	case !ok:
		return "", "", verb.WithHint(fmt.Errorf("registry.allow does not have the server %q", name), advice,
			verb.ExitRefused)
	case pinned != "" && asked != "" && pinned != asked:
		return "", "", verb.WithHint(fmt.Errorf("registry.allow has the version %s of %q, not %s", pinned, name, asked),
			advice, verb.ExitRefused)
	case pinned != "":
		return name, pinned, nil
	case asked != "":
		return name, asked, nil
	}
	return name, registry.Latest, nil
}

// values returns the values of the flags by name.
func (v *serversAddVerb) values() (map[string]string, error) {
	values := map[string]string{}
	for i, list := range [][]string{v.Env, v.Header, v.Set} {
		for _, pair := range list {
			name, value, given := strings.Cut(pair, "=")
			if !given && i > 0 {
				return nil, verb.Usage(fmt.Sprintf("%q has no value", name), "write NAME=VALUE")
			}
			if !given {
				value = "${" + name + "}"
			}
			values[name] = value
		}
	}
	return values, nil
}

// cannotAdd returns why no package and no address of a server can be added.
func cannotAdd(server registry.Server, offers []registry.Offer) error {
	reasons := make([]string, 0, len(offers))
	for _, o := range offers {
		reasons = append(reasons, cleanText(o.Kind+" "+o.What)+": "+o.Refused)
	}
	if len(reasons) == 0 {
		reasons = []string{"it has no package and no address"}
	}
	return verb.WithHint(fmt.Errorf("%s cannot be added: %s", server.Name, strings.Join(reasons, "; ")),
		"airlock servers add NAME -- COMMAND adds a program that you know", verb.ExitFailed)
}

// needs prints the values that are missing.
func needs(s *verb.Streams, server registry.Server, missing *registry.MissingError) error {
	var flags []string
	for _, a := range missing.Asked {
		fmt.Fprintf(s.Err, "airlock: %s\n", about(a))
		flag := a.Flag + " " + visible.Word(a.Name+"=VALUE")
		if a.Flag == "--env" {
			flag = a.Flag + " " + visible.Word(a.Name) // passes Airlock's own variable on
		}
		flags = append(flags, flag)
	}
	return verb.Usage(fmt.Sprintf("%s: %v", server.Name, missing),
		"airlock servers add "+visible.Word(server.Name)+" "+strings.Join(flags, " "))
}

// about describes a value in one line.
func about(a registry.Asked) string {
	text := verb.Clean(a.Flag + " " + a.Name)
	if a.Required {
		text += ", required"
	}
	if a.Secret {
		text += ", secret"
	}
	if a.Default != "" {
		text += ", by default " + cleanText(a.Default)
	}
	if len(a.Choices) > 0 {
		text += ", one of " + cleanText(strings.Join(a.Choices, " "))
	}
	if a.Description != "" {
		text += ": " + cleanText(a.Description)
	}
	return text
}

// review is what a person sees before a server is added.
type review struct {
	registry, id string
	server       registry.Server
	offer        registry.Offer
	others       []registry.Offer
	entry        *config.ServerEntry
}

func (r review) print(w io.Writer) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-12s%s\n", name, text)
		}
	}
	fmt.Fprintf(w, "airlock: %s would be added as %s\n", r.server.Name, catalog.Quote(r.id))
	line("version", r.server.Version)
	line("registry", cleanText(r.registry)+", which anybody can publish to")
	line("it says", cleanText(r.server.Description))
	if r.server.Status == registry.Deprecated {
		line("deprecated", cleanText(r.server.StatusMessage)+" ")
	}
	line("source", cleanText(r.server.Repository.URL))
	if r.entry.Command != "" {
		line("package", r.offer.Kind+" "+cleanText(r.offer.What))
		line("command", whole(r.entry.Command+" "+strings.Join(r.entry.Args, " ")))
		line("permissions", "contained: no network, no files of this machine")
	} else {
		line("address", whole(r.entry.URL))
		line("permissions", "it runs elsewhere and receives the arguments of its calls")
	}
	asked := map[string]bool{}
	for _, a := range r.offer.Asked() {
		asked[a.Name] = true
		line("asks for", about(a))
	}
	for _, set := range []map[string]string{r.entry.Env, r.entry.Headers} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if !asked[name] { // otherwise the value is of the user, and can be a credential
				line("sets", whole(name+"="+set[name]))
			}
		}
	}
	for _, o := range r.others {
		text := cleanText(o.Kind + " " + o.What)
		if o.Refused != "" {
			text += ": " + o.Refused
		}
		line("not used", text)
	}
	line("tools", "unknown until it runs; they are withheld until you have accepted them")
}
