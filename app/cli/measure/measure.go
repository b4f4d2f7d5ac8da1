// Package measure has the verb that measures the cost of tools in tokens.
package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/airlock-mcp/airlock/app/cli/servers"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/tokens"
)

// Verbs are the verbs of airlock measure.
type Verbs struct {
	Tokens measureTokensVerb `cmd:"" help:"Measure what the tools of the configuration cost a model, with Airlock and without."`
}

type measureTokensVerb struct {
	verb.ToolsFlags
	Tools string `type:"path" placeholder:"DIR" help:"Read tools/list answers from DIR/*.json instead of asking servers; a file's name is its server's ID."`
	Grid  bool   `help:"Compare direct calls, search and call, and code, over sizes of the catalog, numbers of calls and sizes of results."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// From this number of tools, or of tokens in their definitions, searching is better than listing.
const (
	manyTools       = 10
	manyDefinitions = 10_000
	maxSampled      = 200 // tools for which a search and a definition are measured
	sampledRun      = "run_01jd2x8m4k7q9v3n5c6b8h0t2r"
)

// tokenCost is the cost of a catalog for a model, in tokens.
type tokenCost struct {
	Tokenizer string `json:"tokenizer"`
	Tools     int    `json:"tools"`
	// AllDefinitions is the cost of all definitions, which hosts send without Airlock.
	AllDefinitions int `json:"allDefinitions"`
	// OwnTools is the cost of the definitions and instructions of Airlock, which replace them.
	OwnTools int `json:"ownTools"`
	// Search and Definition are the average costs of one call and its answer, of search_tools
	// and of get_tool_definition. OnDemand is their sum.
	Search     float64 `json:"search"`
	Definition float64 `json:"definition"`
	OnDemand   float64 `json:"onDemand"`
	// AnswerOverhead is the cost of run_code's answer without the result.
	AnswerOverhead int `json:"answerOverhead"`
	// Pays reports whether there are many tools and Airlock costs less than listing them in a
	// conversation that uses one tool. BreakEven is the number of different tools that a
	// conversation can use before Airlock costs more, or 0 if it always costs more.
	Pays      bool `json:"pays"`
	BreakEven int  `json:"breakEven"`
}

// Run measures the tools of the configuration.
func (v *measureTokensVerb) Run(ctx context.Context, s *verb.Streams) error {
	snapshot, err := v.catalog(ctx, s)
	if err != nil {
		return err
	}
	if snapshot.Len() == 0 {
		return verb.Usage("there are no tools to measure",
			"name a configuration with --config, or a directory with --tools")
	}
	if v.Grid {
		grid, err := measureGrid(snapshot)
		if err != nil {
			return err
		}
		if v.JSON {
			return verb.PrintLine(s.Out, grid)
		}
		return printGrid(s.Out, grid)
	}
	cost, err := measureCost(snapshot)
	if err != nil {
		return err
	}
	if v.JSON {
		return verb.PrintLine(s.Out, cost)
	}
	return printCost(s.Out, cost)
}

// catalog returns the tools. Their entries contain how code calls them.
func (v *measureTokensVerb) catalog(ctx context.Context, s *verb.Streams) (*catalog.Snapshot, error) {
	if v.Tools == "" {
		return v.Snapshot(ctx, s.Err)
	}
	servers, err := servers.ReadLists(v.Tools)
	if err != nil {
		return nil, err
	}
	return catalog.NewSnapshot(servers)
}

// prepared adds to the snapshot how Python calls each tool, because the answers of searches
// contain that.
func prepared(snapshot *catalog.Snapshot) error {
	var failed error
	snapshot.Prepare(nil, func(servers []catalog.Server, language string) map[catalog.ToolRef]catalog.Usage {
		usages, err := codegen.Usages(servers, codegen.Language(language))
		failed = cmp.Or(failed, err)
		return usages
	}, string(codegen.Python))
	return failed
}

// counter counts tokens and keeps the first error.
type counter struct{ err error }

func (c *counter) count(text string) int {
	n, err := tokens.Count(text)
	c.err = cmp.Or(c.err, err)
	return n
}

// shown counts the result of a rendering function.
func (c *counter) shown(text string, err error) int {
	c.err = cmp.Or(c.err, err)
	return c.count(text)
}

func measureCost(snapshot *catalog.Snapshot) (tokenCost, error) {
	if err := prepared(snapshot); err != nil {
		return tokenCost{}, err
	}
	c := &counter{}
	cost := tokenCost{Tokenizer: tokens.Tokenizer, Tools: snapshot.Len(), AllDefinitions: c.direct(snapshot),
		OwnTools: c.own(snapshot)}
	sampled := sample(snapshot, maxSampled)
	for _, tool := range sampled {
		search, definition := c.onDemand(snapshot, tool)
		cost.Search += float64(search) / float64(len(sampled))
		cost.Definition += float64(definition) / float64(len(sampled))
	}
	cost.OnDemand = cost.Search + cost.Definition
	cost.AnswerOverhead = c.count(code.ShownRun(sampledRun, json.RawMessage(`{"count":12}`))) - c.count(`{"count":12}`)
	if saved := float64(cost.AllDefinitions - cost.OwnTools - cost.AnswerOverhead); saved > 0 {
		cost.BreakEven = int(math.Floor(saved / cost.OnDemand))
	}
	cost.Pays = cost.BreakEven > 0 && (cost.Tools >= manyTools || cost.AllDefinitions > manyDefinitions)
	return cost, c.err
}

// direct counts all definitions, as a host lists them.
func (c *counter) direct(snapshot *catalog.Snapshot) int {
	total := 0
	for _, s := range snapshot.Shown() {
		for _, tool := range s.Tools {
			total += c.shown(code.ShownTool(tool.Name, tool.Description, tool.InputSchema))
		}
	}
	return total
}

// own counts Airlock's own tools and instructions.
func (c *counter) own(snapshot *catalog.Snapshot) int {
	var ids []string
	for _, s := range snapshot.Servers() {
		ids = append(ids, s.ID)
	}
	definitions, guide, err := code.ShownTools(ids)
	c.err = cmp.Or(c.err, err)
	return c.count(strings.Join(definitions, "\n")) + c.count(guide)
}

// onDemand counts a search for the words of a tool's name, and the tool's definition. Both counts
// include the call and its answer.
func (c *counter) onDemand(snapshot *catalog.Snapshot, tool catalog.Tool) (search, definition int) {
	question := strings.Join(catalog.Words(tool.Name), " ")
	search = c.count(fmt.Sprintf(`search_tools{"query":%q}`, question)) +
		c.shown(code.ShownSearch(snapshot, catalog.Query{Text: question, Language: string(codegen.Python)}))
	definition = c.count(fmt.Sprintf(`get_tool_definition{"serverId":%q,"name":%q}`, tool.ServerID, tool.Name)) +
		c.shown(code.ShownDefinition(snapshot, tool.ServerID, tool.Name))
	return search, definition
}

// sample returns at most limit usable tools, spread evenly over the catalog.
func sample(snapshot *catalog.Snapshot, limit int) []catalog.Tool {
	var all []catalog.Tool
	for _, s := range snapshot.Servers() {
		all = append(all, slices.DeleteFunc(slices.Clone(s.Tools), func(t catalog.Tool) bool { return t.Withheld })...)
	}
	if len(all) <= limit {
		return all
	}
	chosen := make([]catalog.Tool, limit)
	for i := range chosen {
		chosen[i] = all[i*len(all)/limit]
	}
	return chosen
}

func printCost(out io.Writer, cost tokenCost) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "tools\t%d\n", cost.Tools)
	fmt.Fprintf(table, "all definitions up front\t%d tokens\n", cost.AllDefinitions)
	fmt.Fprintf(table, "Airlock's tools and instructions\t%d tokens\n", cost.OwnTools)
	fmt.Fprintf(table, "on demand, for each tool that is used\t%.0f tokens: a search %.0f, its definition %.0f\n",
		cost.OnDemand, cost.Search, cost.Definition)
	fmt.Fprintf(table, "an answer, beside its result\t%d tokens\n", cost.AnswerOverhead)
	fmt.Fprintf(table, "break-even\t%s\n", breakEven(cost))
	fmt.Fprintf(table, "tokenizer\t%s\n", cost.Tokenizer)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, verdict(cost))
	return err
}

func breakEven(cost tokenCost) string {
	if cost.BreakEven == 0 {
		return "none: listing all tools costs less from the first on"
	}
	return fmt.Sprintf("a conversation that uses %d different tools", cost.BreakEven)
}

func verdict(cost tokenCost) string {
	switch {
	case cost.Pays:
		return "Airlock saves tokens here."
	case cost.BreakEven > 0:
		return fmt.Sprintf("Airlock saves few tokens here: there are fewer than %d tools, with %d tokens or less.",
			manyTools, manyDefinitions)
	}
	return "Airlock costs tokens here: use it for its sandbox, policies and log, or for results that need not pass " +
		"through the model."
}
