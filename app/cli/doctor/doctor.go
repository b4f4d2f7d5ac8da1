// Package doctor has the verb that checks whether this machine can run sandboxes.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
)

// Verb is airlock doctor.
type Verb struct {
	verb.ConfigFlag
	Servers  bool `help:"Start the configured servers too, and say how each fares."`
	Contract bool `help:"Prove the runtime contract too: run its cases in real sandboxes and print a table."`
	JSON     bool `name:"json" help:"Print JSON."`
}

// The results of a check.
const (
	CheckOK      = "ok"
	checkFailed  = "FAIL"
	checkSkipped = "skip" // it would only repeat the failure of another check
	CheckNoted   = "note" // it passed, and found something worth knowing
)

// Checked is the result of one check.
type Checked struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	Hint    string   `json:"hint,omitempty"`

	Blocks bool `json:"-"` // no code can run if it fails or is skipped
}

// Run makes every check and prints the results. It fails if a check failed.
func (v *Verb) Run(ctx context.Context, s *verb.Streams) error {
	e := &Examination{startsServers: v.Servers}
	notes := verb.Cleaned(s.Out)
	if v.JSON {
		notes = s.Err
	}
	e.Config, e.Unreadable = v.Load(notes) // prints the warnings
	done := verb.Progress(s, "checking this machine")
	results := v.Examine(ctx, e)
	done()
	failed, blocked := 0, false
	for i := range results {
		r := &results[i]
		r.Name, r.Text, r.Hint, r.Details = verb.Clean(r.Name), verb.Clean(r.Text), verb.Clean(r.Hint),
			verb.CleanAll(r.Details)
		if r.State == checkFailed {
			failed++
		}
		blocked = blocked || r.Blocks && r.State != CheckOK && r.State != CheckNoted
	}
	if v.JSON {
		return errors.Join(verb.PrintLine(s.Out, map[string]any{"ok": failed == 0, "checks": results}),
			verb.FailIf(failed > 0))
	}
	PrintChecks(s, results)
	switch {
	case blocked:
		fmt.Fprintf(s.Out, "\n%d of %s failed: no code runs here before they pass.\n", failed,
			verb.Counted(len(results), "check"))
	case failed > 0:
		fmt.Fprintf(s.Out, "\nThis machine can run sandboxes, but %d of %s failed.\n", failed,
			verb.Counted(len(results), "check"))
	default:
		fmt.Fprintln(s.Out, "\nThis machine can run sandboxes.")
	}
	if failed > 0 {
		return verb.ExitError(verb.ExitFailed)
	}
	command, err := verb.RegisterCommand(e.Config, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "Claude Code uses it after:  %s\n", command)
	if v.Contract {
		return v.proveContract(ctx, e.Config, s)
	}
	return nil
}

// Examine makes the checks. A check that needs a failed one is skipped, so that each mistake is
// reported once.
func (v *Verb) Examine(ctx context.Context, e *Examination) []Checked {
	var results []Checked
	failed := map[string]bool{}
	for _, c := range e.checks() {
		if lacking := c.lacking(failed); lacking != "" {
			failed[c.name] = true
			results = append(results, Checked{Name: c.name, State: checkSkipped,
				Text: "not tried before this is right: " + lacking, Blocks: c.blocks})
			continue
		}
		result := Checked{Name: c.name, State: CheckOK}
		found, err := c.run(ctx)
		text, details, listed := strings.Cut(found, "\n")
		result.Text = text
		if listed {
			result.Details = strings.Split(details, "\n")
		}
		switch note := (*noted)(nil); {
		case errors.As(err, &note):
			result.State, result.Text, result.Hint = CheckNoted, note.text, note.hint
		case err != nil:
			failed[c.name] = true
			result = failedCheck(c.name, err)
			result.Blocks = c.blocks
		}
		results = append(results, result)
	}
	if v.Servers && !failed[checkConfiguration] && !failed["credentials"] {
		results = append(results, askServers(ctx, e.Config)...)
	}
	return results
}

func failedCheck(name string, err error) Checked {
	result := Checked{Name: name, State: checkFailed, Text: err.Error()}
	var advised interface{ Hint() string }
	if errors.As(setup.Advise(err), &advised) {
		result.Hint = advised.Hint()
	}
	return result
}

// mostWarnings is how many warnings about one server's tools are listed.
const mostWarnings = 10

// askServers starts every server and returns a result for each.
func askServers(ctx context.Context, c *config.Config) []Checked {
	if len(c.Servers) == 0 {
		return nil
	}
	hints := map[string]string{}
	servers, err := system.OpenCatalog(ctx, c, system.Options{
		Version: verb.Version, Logger: slog.New(slog.DiscardHandler), Tools: upstreams.AskServers,
		Notify: func(n upstreams.Notice) { hints[n.Server] = n.Hint },
	})
	if err != nil {
		return []Checked{failedCheck("servers", err)}
	}
	var results []Checked
	for _, server := range servers.Snapshot().Servers() {
		result := Checked{Name: "server " + server.ID, State: CheckOK, Text: verb.Counted(len(server.Tools), "tool")}
		if n := len(server.Warnings); n > 0 {
			result.Text += ", " + verb.Counted(n, "warning")
			result.Details = server.Warnings[:min(n, mostWarnings)]
			if n > mostWarnings {
				result.Text += ": airlock tools list --fresh tells all"
			}
		}
		if server.Problem != "" {
			result = Checked{Name: result.Name, State: checkFailed, Text: server.Problem, Hint: hints[server.ID]}
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

// PrintChecks prints a table, with a hint below each failed check. On a terminal the texts are
// wrapped to its width.
func PrintChecks(s *verb.Streams, results []Checked) {
	paint, names := verb.PainterFor(s.Out), 14
	for _, r := range results {
		names = max(names, len(r.Name))
	}
	styles := map[string]verb.Style{CheckOK: verb.Green, checkFailed: verb.Red, checkSkipped: verb.Yellow,
		CheckNoted: verb.Yellow}
	indent := strings.Repeat(" ", len("FAIL  ")+names+1)
	if room := verb.Width(s.Out); room > 0 && len(indent) > room/2 {
		indent = strings.Repeat(" ", len("FAIL  "))
	}
	tell := func(text string) {
		for _, line := range verb.Wrapped(text, verb.Width(s.Out)-len(indent)) {
			fmt.Fprintf(s.Out, "%s%s\n", indent, line)
		}
	}
	for i, r := range results {
		head := fmt.Sprintf("%s %-*s ", paint.Paint(styles[r.State], fmt.Sprintf("%-5s", r.State)), names,
			verb.OneLine(r.Name, 60))
		// the text is printed below the name
		if room := verb.Width(s.Out); room > 0 && len(indent) < len("FAIL  ")+names+1 {
			fmt.Fprintln(s.Out, strings.TrimRight(head, " "))
			tell(verb.OneLine(r.Text, 2000))
		} else {
			lines := verb.Wrapped(verb.OneLine(r.Text, 2000), room-len(indent))
			fmt.Fprintln(s.Out, strings.TrimRight(head+lines[0], " "))
			for _, line := range lines[1:] {
				fmt.Fprintf(s.Out, "%s%s\n", indent, line)
			}
		}
		for _, detail := range r.Details {
			tell(verb.OneLine(detail, 2000))
		}
		if r.Hint != "" && (i == 0 || results[i-1].Hint != r.Hint) {
			tell("hint: " + r.Hint)
		}
	}
}
