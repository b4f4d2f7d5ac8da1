package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
)

type doctorVerb struct {
	configFlag
	Servers  bool `help:"Start the configured servers too, and say how each fares."`
	Contract bool `help:"Prove the runtime contract too: run its cases in real sandboxes and print a table."`
	JSON     bool `name:"json" help:"Print JSON."`
}

// The results of a check.
const (
	checkOK      = "ok"
	checkFailed  = "FAIL"
	checkSkipped = "skip" // it would only repeat the failure of another check
	checkNoted   = "note" // it passed, and found something worth knowing
)

// checked is the result of one check.
type checked struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	Hint    string   `json:"hint,omitempty"`

	blocks bool // no code can run if it fails or is skipped
}

// Run makes every check and prints the results. It fails if a check failed.
func (v *doctorVerb) Run(ctx context.Context, s *streams) error {
	e := &examination{}
	notes := cleaned(s.out)
	if v.JSON {
		notes = s.err
	}
	e.config, e.unreadable = v.load(notes) // prints the warnings
	done := progress(s, "checking this machine")
	results := v.examine(ctx, e)
	done()
	failed, blocked := 0, false
	for i := range results {
		r := &results[i]
		r.Name, r.Text, r.Hint, r.Details = clean(r.Name), clean(r.Text), clean(r.Hint), cleanAll(r.Details)
		if r.State == checkFailed {
			failed++
		}
		blocked = blocked || r.blocks && r.State != checkOK && r.State != checkNoted
	}
	if v.JSON {
		return errors.Join(printLine(s.out, map[string]any{"ok": failed == 0, "checks": results}), failIf(failed > 0))
	}
	printChecks(s, results)
	switch {
	case blocked:
		fmt.Fprintf(s.out, "\n%d of %s failed: no code runs here before they pass.\n", failed, counted(len(results), "check"))
	case failed > 0:
		fmt.Fprintf(s.out, "\nThis machine can run sandboxes, but %d of %s failed.\n", failed, counted(len(results), "check"))
	default:
		fmt.Fprintln(s.out, "\nThis machine can run sandboxes.")
	}
	if failed > 0 {
		return exitError(ExitFailed)
	}
	command, err := registerCommand(e.config, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Claude Code uses it after:  %s\n", command)
	if v.Contract {
		return v.proveContract(ctx, e.config, s)
	}
	return nil
}

// failIf returns an error that ends a verb without a message, because the verb has already
// printed what failed.
func failIf(failed bool) error {
	if failed {
		return exitError(ExitFailed)
	}
	return nil
}

// examine makes the checks. A check that needs a failed one is skipped, so that each mistake is
// reported once.
func (v *doctorVerb) examine(ctx context.Context, e *examination) []checked {
	var results []checked
	failed := map[string]bool{}
	for _, c := range e.checks() {
		if lacking := c.lacking(failed); lacking != "" {
			failed[c.name] = true
			results = append(results, checked{Name: c.name, State: checkSkipped, Text: "not tried before this is right: " + lacking, blocks: c.blocks})
			continue
		}
		result := checked{Name: c.name, State: checkOK}
		found, err := c.run(ctx)
		text, details, listed := strings.Cut(found, "\n")
		result.Text = text
		if listed {
			result.Details = strings.Split(details, "\n")
		}
		switch note := (*noted)(nil); {
		case errors.As(err, &note):
			result.State, result.Text, result.Hint = checkNoted, note.text, note.hint
		case err != nil:
			failed[c.name] = true
			result = failedCheck(c.name, err)
			result.blocks = c.blocks
		}
		results = append(results, result)
	}
	if v.Servers && !failed[checkConfiguration] && !failed["credentials"] {
		results = append(results, askServers(ctx, e.config)...)
	}
	return results
}

func failedCheck(name string, err error) checked {
	result := checked{Name: name, State: checkFailed, Text: err.Error()}
	var advised interface{ Hint() string }
	if errors.As(system.Advise(err), &advised) {
		result.Hint = advised.Hint()
	}
	return result
}

// mostWarnings is how many warnings about one server's tools are listed.
const mostWarnings = 10

// askServers starts every server and returns a result for each.
func askServers(ctx context.Context, c *config.Config) []checked {
	if len(c.Servers) == 0 {
		return nil
	}
	hints := map[string]string{}
	servers, err := system.OpenCatalog(ctx, c, system.Options{
		Version: version, Logger: slog.New(slog.DiscardHandler), Tools: system.AskServers,
		Notify: func(n system.Notice) { hints[n.Server] = n.Hint },
	})
	if err != nil {
		return []checked{failedCheck("servers", err)}
	}
	var results []checked
	for _, server := range servers.Snapshot().Servers() {
		result := checked{Name: "server " + server.ID, State: checkOK, Text: counted(len(server.Tools), "tool")}
		if n := len(server.Warnings); n > 0 {
			result.Text += ", " + counted(n, "warning")
			result.Details = server.Warnings[:min(n, mostWarnings)]
			if n > mostWarnings {
				result.Text += ": airlock tools list --fresh tells all"
			}
		}
		if server.Problem != "" {
			result = checked{Name: result.Name, State: checkFailed, Text: server.Problem, Hint: hints[server.ID]}
		}
		results = append(results, result)
	}
	if err := servers.Close(); err != nil {
		results = append(results, failedCheck("servers", err))
	}
	return results
}

// lacking returns the name of a failed check that this one needs, or "".
func (c check) lacking(failed map[string]bool) string {
	if i := slices.IndexFunc(c.needs, func(name string) bool { return failed[name] }); i >= 0 {
		return c.needs[i]
	}
	if len(c.needsOne) > 0 && !slices.ContainsFunc(c.needsOne, func(name string) bool { return !failed[name] }) {
		return c.needsOne[0]
	}
	return ""
}

// printChecks prints a table, with a hint below each failed check. On a terminal the texts are
// wrapped to its width.
func printChecks(s *streams, results []checked) {
	paint, names := painterFor(s.out), 14
	for _, r := range results {
		names = max(names, len(r.Name))
	}
	styles := map[string]style{checkOK: green, checkFailed: red, checkSkipped: yellow, checkNoted: yellow}
	indent := strings.Repeat(" ", len("FAIL  ")+names+1)
	if room := width(s.out); room > 0 && len(indent) > room/2 {
		indent = strings.Repeat(" ", len("FAIL  "))
	}
	tell := func(text string) {
		for _, line := range wrapped(text, width(s.out)-len(indent)) {
			fmt.Fprintf(s.out, "%s%s\n", indent, line)
		}
	}
	for i, r := range results {
		head := fmt.Sprintf("%s %-*s ", paint.paint(styles[r.State], fmt.Sprintf("%-5s", r.State)), names, oneLine(r.Name, 60))
		if room := width(s.out); room > 0 && len(indent) < len("FAIL  ")+names+1 { // the text is printed below the name
			fmt.Fprintln(s.out, strings.TrimRight(head, " "))
			tell(oneLine(r.Text, 2000))
		} else {
			lines := wrapped(oneLine(r.Text, 2000), room-len(indent))
			fmt.Fprintln(s.out, strings.TrimRight(head+lines[0], " "))
			for _, line := range lines[1:] {
				fmt.Fprintf(s.out, "%s%s\n", indent, line)
			}
		}
		for _, detail := range r.Details {
			tell(oneLine(detail, 2000))
		}
		if r.Hint != "" && (i == 0 || results[i-1].Hint != r.Hint) {
			tell("hint: " + r.Hint)
		}
	}
}
