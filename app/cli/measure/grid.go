package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/catalog"
)

// The dimensions of the grid.
var (
	gridTools    = []int{10, 100, 700}
	gridCalls    = []int{1, 10, 100}
	gridPayloads = []int{100, 1_000, 10_000} // bytes of one result
)

// gridCell is the number of tokens that a model reads and writes in one task. Each text is
// counted once. The task is to call one tool several times with different arguments and to sum
// one field of the results.
type gridCell struct {
	Tools        int `json:"tools"`
	Calls        int `json:"calls"`
	ResultBytes  int `json:"resultBytes"`
	Direct       int `json:"direct"`
	SearchToCall int `json:"searchAndCall"`
	Code         int `json:"code"`
}

// measureGrid measures every cell with real definitions and real answers.
func measureGrid(snapshot *catalog.Snapshot) ([]gridCell, error) {
	var cells []gridCell
	for _, size := range gridTools {
		part, err := cutTo(snapshot, size)
		if err != nil {
			return nil, err
		}
		if err := prepared(part); err != nil {
			return nil, err
		}
		c := &counter{}
		direct, own := c.direct(part), c.own(part)
		tool := median(part)
		search, definition := c.onDemand(part, tool)
		program := c.count(gridProgram(part, tool))
		answer := c.count(code.ShownRun(sampledRun, json.RawMessage(`{"calls":100,"sum":123456}`)))
		overhead := answer - c.count(`{"calls":100,"sum":123456}`)
		for _, calls := range gridCalls {
			for _, bytes := range gridPayloads {
				call := c.count(fmt.Sprintf(`%s{"id":"a1b2c3"}`, tool.Name)) + c.count(payload(bytes))
				cells = append(cells, gridCell{
					Tools: part.Len(), Calls: calls, ResultBytes: bytes,
					Direct:       direct + calls*call,
					SearchToCall: own + search + definition + calls*(call+overhead),
					Code:         own + search + definition + program + answer,
				})
			}
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	return cells, nil
}

// cutTo returns a snapshot with size tools, spread evenly over a larger one.
func cutTo(snapshot *catalog.Snapshot, size int) (*catalog.Snapshot, error) {
	var servers []catalog.Server
	at := map[string]int{}
	for _, tool := range sample(snapshot, size) {
		i, known := at[tool.ServerID]
		if !known {
			i = len(servers)
			at[tool.ServerID] = i
			servers = append(servers, catalog.Server{ID: tool.ServerID})
		}
		servers[i].Tools = append(servers[i].Tools, tool)
	}
	return catalog.NewSnapshot(servers)
}

// median returns the tool whose definition has the median length.
func median(snapshot *catalog.Snapshot) catalog.Tool {
	all := sample(snapshot, snapshot.Len())
	shorter := func(tool catalog.Tool) (n int) {
		for _, other := range all {
			if len(other.Raw) < len(tool.Raw) {
				n++
			}
		}
		return n
	}
	best := all[0]
	for _, tool := range all {
		if abs(shorter(tool)-len(all)/2) < abs(shorter(best)-len(all)/2) {
			best = tool
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// gridProgram returns the call of run_code with a program that calls the tool in a loop.
func gridProgram(snapshot *catalog.Snapshot, tool catalog.Tool) string {
	line := ""
	for _, entry := range snapshot.Find(catalog.Query{ServerID: tool.ServerID, Limit: catalog.MaxLimit,
		Language: "python"}).Tools {
		if entry.ToolName == tool.Name {
			line = entry.Import
		}
	}
	code := line + `

ids = ["a1b2c3", "d4e5f6", "g7h8i9"]
total = 0
for id in ids:
    page = await call({"id": id})
    total += sum(row["amount"] for row in page.data["rows"])
result = {"calls": len(ids), "sum": total}
`
	raw, err := json.Marshal(map[string]string{"language": "python", "code": code})
	if err != nil {
		return code
	}
	return "run_code" + string(raw)
}

// payload returns a result of about the given number of bytes, with rows like those of real
// services.
func payload(bytes int) string {
	text := `{"rows":[`
	for i := 0; len(text) < bytes-2; i++ {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(
			`{"id":"inv_%05d","customer":"cus_%04x","amount":%d,"currency":"EUR","status":"open",`+
				`"due":"2026-%02d-%02d"}`, 48213+7*i, 40961+13*i, 1250+31*i, 1+i%12, 1+i%28)
	}
	return text + "]}"
}

func printGrid(out io.Writer, cells []gridCell) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(table, "tools\tcalls\tresult, bytes\tdirect\tsearch and call\tcode\tleast\t")
	for _, c := range cells {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", c.Tools, c.Calls, c.ResultBytes, c.Direct, c.SearchToCall,
			c.Code, c.least())
	}
	return table.Flush()
}

func (c gridCell) least() string {
	switch least := min(c.Direct, c.SearchToCall, c.Code); least {
	case c.Direct:
		return "direct"
	case c.Code:
		return "code"
	default:
		return "search and call"
	}
}
