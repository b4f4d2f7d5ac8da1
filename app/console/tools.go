package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
)

// toolsSection lists the tools that the caller may see, and those that are withheld. A server or a tool may have any
// name, so the names are in the query of URLs and not in the path.
func toolsSection() section {
	return section{name: "Tools", path: "/tools", scope: auth.ScopeRun, template: "tools", pages: []page{
		{pattern: "GET /tools", scope: auth.ScopeRun, show: showTools},
	}}
}

// toolSection shows one tool. The list links to it.
func toolSection() section {
	return section{path: "/tools", template: "tool", pages: []page{
		{pattern: "GET /tools/one", scope: auth.ScopeRun, show: showTool},
	}}
}

func changesSection() section {
	return section{path: "/tools", template: "changes", pages: []page{
		{pattern: "GET /tools/changes", scope: auth.ScopeRun, show: showChanges},
		{pattern: "POST /tools/accept", scope: auth.ScopeAdmin, show: acceptTools},
	}}
}

// toolsPage is the maximum number of tools on a page.
const toolsPage = 50

// maxQuery is the maximum length of a search query in bytes.
const maxQuery = 500

type shownTools struct {
	Query, Server  string
	Servers        []string
	Found          catalog.Answer
	First, Last    int
	Earlier, Later string // URLs; may be empty
	Changed        int    // how many are withheld
}

func showTools(c *Console, q *query) (view, error) {
	asked := q.URL.Query()
	shown := shownTools{Query: asked.Get("q"), Server: asked.Get("server"),
		Changed: len(c.opts.System.ChangedTools(q.who))}
	if len(shown.Query) > maxQuery {
		return view{}, &refusal{http.StatusRequestEntityTooLarge, "A search has at most 500 bytes.",
			"Say it in fewer words."}
	}
	snapshot := c.opts.System.Snapshot(q.who)
	for _, server := range snapshot.Servers() {
		shown.Servers = append(shown.Servers, server.ID)
	}
	offset, _ := strconv.Atoi(asked.Get("from")) // an invalid number means the first page
	offset = min(max(offset, 0), snapshot.Len())
	shown.Found = snapshot.Find(catalog.Query{Text: shown.Query, ServerID: shown.Server,
		Detail: catalog.DetailDescription, Limit: toolsPage, Offset: offset})
	shown.First, shown.Last = offset+1, offset+len(shown.Found.Tools)
	at := func(from int) string {
		return "/tools?" + url.Values{"q": {shown.Query}, "server": {shown.Server},
			"from": {strconv.Itoa(from)}}.Encode()
	}
	if offset > 0 {
		shown.Earlier = at(max(0, offset-toolsPage))
	}
	if shown.Last < shown.Found.Total && len(shown.Found.Tools) > 0 {
		shown.Later = at(shown.Last)
	}
	return view{title: "Tools", data: shown}, nil
}

// toolPath returns the URL of the page of a tool.
func toolPath(serverID, toolName string) string {
	return "/tools/one?" + url.Values{"server": {serverID}, "tool": {toolName}}.Encode()
}

type shownTool struct {
	Server, Name       string
	Title, Description string
	Risk, Why          string
	Flags              []string
	Definition         string
	Withheld           bool
}

func showTool(c *Console, q *query) (view, error) {
	asked := q.URL.Query()
	shown := shownTool{Server: asked.Get("server"), Name: asked.Get("tool")}
	rules, err := c.opts.System.RuleSet(q.who)
	if err != nil {
		return view{}, err
	}
	tool, err := rules.Snapshot.Lookup(shown.Server, shown.Name)
	var unknown *catalog.UnknownError
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &unknown):
		return view{}, notFound("tool")
	case errors.As(err, &withheld):
		shown.Withheld = true
		return view{title: shown.Name, data: shown}, nil
	case err != nil:
		return view{}, err
	}
	definition, err := rules.Snapshot.Definition(shown.Server, shown.Name)
	if err != nil {
		return view{}, err
	}
	shown.Title, shown.Description = catalog.Clean(tool.Title), catalog.Clean(tool.Description)
	for _, flag := range definition.Flags {
		shown.Flags = append(shown.Flags, flag.String())
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, definition.JSON, "", "  ") != nil {
		pretty.Write(definition.JSON)
	}
	shown.Definition = pretty.String()
	explained, err := rules.Explain(q.who, shown.Server, shown.Name, "")
	if err != nil {
		return view{}, err
	}
	shown.Risk, shown.Why = explained.Decision.Risk.String(), explained.WhyRisk()
	return view{title: shown.Name, data: shown}, nil
}

// shownServerChanges are the withheld tools of one server.
type shownServerChanges struct {
	ServerID string
	Digest   string // of all of them, as they are accepted together
	Changes  []shownChange
}

// shownChange is a withheld tool.
type shownChange struct {
	pins.Change
	Digest string // as it is accepted
	Short  string // its digest as airlock tools diff prints it
	Lines  []diffLine
}

// diffLine is one line of a unified diff.
type diffLine struct{ Kind, Text string }

func diffLines(unified []byte) []diffLine {
	var list []diffLine
	for line := range strings.Lines(string(unified)) {
		line = strings.TrimSuffix(line, "\n")
		kind := "same"
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "@@"):
			kind = "place"
		case strings.HasPrefix(line, "--- ") && len(list) < 3, strings.HasPrefix(line, "+++ ") && len(list) < 3:
			kind = "place"
		case strings.HasPrefix(line, "-"):
			kind = "removed"
		case strings.HasPrefix(line, "+"):
			kind = "added"
		}
		list = append(list, diffLine{kind, line})
	}
	return list
}

func showChanges(c *Console, q *query) (view, error) {
	var shown struct {
		Servers   []shownServerChanges
		MayAccept bool
	}
	changes := c.opts.System.ChangedTools(q.who) // by server
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].ServerID == changes[0].ServerID {
			n++
		}
		server := shownServerChanges{ServerID: changes[0].ServerID, Digest: pins.ShownDigest(changes[:n])}
		for i, change := range changes[:n] {
			server.Changes = append(server.Changes, shownChange{change, pins.ShownDigest(changes[i : i+1]),
				pins.ShortDigest(change.Found), diffLines(pins.Difference(change))})
		}
		shown.Servers = append(shown.Servers, server)
		changes = changes[n:]
	}
	shown.MayAccept = q.may(auth.ScopeAdmin)
	return view{title: "Withheld tools", data: shown}, nil
}

// acceptTools accepts the shown definitions of one tool of a server, or of all that are withheld, so that they can be
// used.
func acceptTools(c *Console, q *query) (view, error) {
	server, tool := q.PostForm.Get("server"), q.PostForm.Get("tool")
	err := c.opts.System.AcceptTools(q.Context(), q.who, server, tool, q.PostForm.Get("digest"))
	switch {
	case errors.Is(err, upstreams.ErrOtherChange):
		q.notify("Nothing was accepted: %v.", err)
	case err != nil:
		return view{}, err
	case tool == "":
		q.notify("The tools of %s can be used, with the definitions that you were shown.", server)
	default:
		q.notify("%s of %s can be used, with the definition that you were shown.", tool, server)
	}
	return view{redirect: "/tools/changes"}, nil
}
