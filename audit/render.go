package audit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// maxShown is the most characters of a foreign name that a line shows.
const maxShown = 100

// WriteLine writes one record as one line for people.
func WriteLine(w io.Writer, r Record) error {
	parts := []string{fmt.Sprintf("%8d  %s  %-9s", r.Seq, shortTime(r.Time), r.Kind)}
	add := func(label, value string) {
		if value != "" {
			parts = append(parts, label+visible.Clip(value, maxShown))
		}
	}
	add("", tool(r))
	add("", r.Outcome)
	add("", r.ErrorType)
	if r.Kind == KindIntent || r.Outcome == OutcomeRefused {
		add("", r.RulingLine())
	}
	if r.Kind == KindOutcome || r.Kind == KindRunEnd {
		add("", cost(r))
	}
	add("", r.RedactionsLine())
	add("limit=", r.Limit)
	add("engine=", r.Engine)
	add("verdict=", r.Verdict)
	add("verification=", r.VerificationID)
	add("language=", r.Language)
	if caller.Kind(r.CallerKind) == caller.Contained {
		add("server=", r.Principal)
	} else {
		add("for=", r.Principal)
	}
	add("run=", r.RunID)
	add("call=", r.CallID)
	add("task=", r.TaskID)
	add("", r.Detail)
	_, err := fmt.Fprintln(w, strings.Join(parts, "  "))
	return err
}

// WriteTree writes a run as a tree: code, calls, decisions, sizes, times.
func WriteTree(w io.Writer, t *RunTree) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s\n", visible.Text(t.ID))
	if t.Start != nil {
		header(&b, *t.Start)
	}
	for _, s := range t.Steps() {
		if s.Event != nil {
			writeEvent(&b, *s.Event)
			continue
		}
		writeCall(&b, *s.Call)
	}
	if t.End == nil {
		b.WriteString("└─ not ended\n")
	} else {
		ending(&b, *t.End, cmp.Or(t.End.Calls, len(t.Calls)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeEvent writes a violation, a decision of the risk gateway or a verdict.
func writeEvent(b *strings.Builder, r Record) {
	fmt.Fprintf(b, "├─ %s  %s\n", r.Kind, shortTime(r.Time))
	for _, line := range []struct{ label, value string }{
		{"decision ", r.Decided()}, {"engine ", r.Engine}, {"verdict ", r.Verdict}, {"verification ", r.VerificationID},
		{"", r.ErrorType}, {"", r.Detail},
	} {
		if line.value != "" {
			fmt.Fprintf(b, "│    %s%s\n", line.label, visible.Text(line.value))
		}
	}
}

func header(b *strings.Builder, r Record) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "│  %-9s %s\n", name, visible.Text(value))
		}
	}
	field("began", r.Time)
	field("for", r.Principal)
	field("issuer", r.Issuer)
	field("session", r.SessionID)
	field("host", r.Host)
	field("model", r.Model)
	field("language", r.Language)
	field("code", r.CodeHash)
	field("image", r.Image)
	field("tools", r.Snapshot)
	field("trace", r.TraceID)
	name := "limits"
	for _, line := range limits(r) {
		fmt.Fprintf(b, "│  %-9s %s\n", name, visible.Text(line))
		name = ""
	}
}

// limits lists the limits of a run in lines of bearable length, by their names.
func limits(r Record) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		text := name + " " + r.Limits[name]
		if last := len(lines) - 1; last >= 0 && len(lines[last])+len(text) < maxShown {
			lines[last] += ", " + text
			continue
		}
		lines = append(lines, text)
	}
	return lines
}

func writeCall(b *strings.Builder, c CallTree) {
	last := c.Last()
	fmt.Fprintf(b, "├─ %s  %s", visible.Clip(tool(last), maxShown), shortTime(last.Time))
	switch {
	case c.Outcome == nil:
		b.WriteString("  under way\n")
	default:
		fmt.Fprintf(b, "  %s", c.Outcome.Outcome)
		for _, extra := range []string{c.Outcome.ErrorType, cost(*c.Outcome)} {
			if extra != "" {
				fmt.Fprintf(b, "  %s", visible.Clip(extra, maxShown))
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "│    call       %s\n", visible.Text(c.ID))
	if text := last.RulingLine(); text != "" {
		fmt.Fprintf(b, "│    decision   %s\n", visible.Text(text))
	}
	for _, asked := range c.Approvals {
		fmt.Fprintf(b, "│    approval   %s  %s\n", shortTime(asked.Time), visible.Text(asked.Detail))
	}
	if len(c.Arguments) > 0 {
		fmt.Fprintf(b, "│    arguments  %s\n", visible.Text(string(c.Arguments)))
	} else if text := c.ShownArguments(); text != "" {
		fmt.Fprintf(b, "│    arguments  %s\n", visible.Clip(text, 4*maxShown))
	}
	if text := last.RedactionsLine(); text != "" {
		fmt.Fprintf(b, "│    %s\n", text)
	}
	if last.Limit != "" {
		fmt.Fprintf(b, "│    limit      %s\n", visible.Clip(last.Limit, maxShown))
	}
	if last.Detail != "" && last.Kind != KindApproval { // whose detail is in the line of the approval
		fmt.Fprintf(b, "│    why        %s\n", visible.Text(last.Detail))
	}
}

// ShownArguments returns the stored arguments, or otherwise the recorded form of the call's
// intent or, if it was refused, its outcome.
func (c CallTree) ShownArguments() string {
	if len(c.Arguments) > 0 {
		return string(c.Arguments)
	}
	for _, r := range slices.Concat(deref(c.Intent), deref(c.Outcome)) {
		if len(r.Arguments) > 0 {
			return string(r.Arguments)
		}
	}
	return ""
}

// Last is the newest record about the call.
func (c CallTree) Last() Record {
	switch {
	case c.Outcome != nil:
		return *c.Outcome
	case c.Intent != nil:
		return *c.Intent
	}
	return c.Approvals[len(c.Approvals)-1]
}

// ending shows how a run ended; the calls of one that was killed are counted from
// the log.
func ending(b *strings.Builder, r Record, calls int) {
	fmt.Fprintf(b, "└─ %s", r.Outcome)
	for _, extra := range []string{errorOf(r), cost(r), limitOf(r), r.RedactionsLine(), r.Detail} {
		if extra != "" {
			fmt.Fprintf(b, "  %s", visible.Clip(extra, maxShown))
		}
	}
	if calls == 1 {
		b.WriteString("  1 call")
	} else {
		fmt.Fprintf(b, "  %d calls", calls)
	}
	if r.ApprovalState != "" {
		fmt.Fprintf(b, "  approval %s", visible.Text(r.ApprovalState))
	}
	if r.OutputDigest != "" {
		fmt.Fprintf(b, "\n   output %s", visible.Text(r.OutputDigest))
	}
	b.WriteString("\n")
}

// errorOf returns a run's error and its source.
func errorOf(r Record) string {
	if r.ErrorSource == "" {
		return r.ErrorType
	}
	return r.ErrorType + " (" + r.ErrorSource + ")"
}

func limitOf(r Record) string {
	if r.Limit == "" {
		return ""
	}
	return "limit " + r.Limit
}

// WriteReport writes what Verify found.
func WriteReport(w io.Writer, r Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s line %d", f.File, f.Line)
		}
		if f.Seq > 0 {
			where += fmt.Sprintf(": record %d", f.Seq)
		}
		fmt.Fprintf(&b, "%s: %s\n", where, visible.Text(f.Text))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	for _, removal := range r.Removed {
		fmt.Fprintf(&b, "removed: %s\n", removal)
	}
	for _, text := range r.Remarks {
		fmt.Fprintf(&b, "note: %s\n", visible.Text(text))
	}
	verdict := "the audit log is sound"
	if !r.OK() {
		verdict = "THE AUDIT LOG WAS CHANGED"
	}
	fmt.Fprintf(&b, "%s: %d records, %d to %d", verdict, r.Records, r.First, r.Last)
	if r.Open > 0 {
		fmt.Fprintf(&b, ", %d without an end", r.Open)
	}
	if r.Unsigned > 0 {
		fmt.Fprintf(&b, ", the last %d not signed yet", r.Unsigned)
	}
	fmt.Fprintf(&b, "\nhead %s\n", r.Head)
	if r.Key != "" {
		fmt.Fprintf(&b, "key %s\n", r.Key)
	}
	if w := r.Witness; w != nil {
		fmt.Fprintf(&b, "witness: %d checkpoints, the newest of record %d\n", w.Checkpoints, w.Newest)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tool(r Record) string {
	if r.ServerID == "" && r.ToolName == "" {
		return ""
	}
	return r.ServerID + "/" + r.ToolName
}

const (
	decisionAllow = "allow"
	decisionAsk   = "ask" // the word of the rules for what they allow a person to allow
)

// Decided returns the decision about an act. It is "ask" if a person had to allow the act and nobody has.
func (r Record) Decided() string {
	if asked(r) && r.Approver == "" && r.Decision == decisionAllow {
		return decisionAsk
	}
	return r.Decision
}

// RulingLine returns the decision about an act, the deciding rules, and the approver on one
// line, or "" if nothing was decided.
func (r Record) RulingLine() string {
	if r.Decision == "" {
		return ""
	}
	text := r.Decision
	if asked(r) && text == decisionAllow {
		text = decisionAsk
	}
	if len(r.Policies) > 0 {
		text += " by " + strings.Join(r.Policies, ", ")
	}
	if r.Risk != "" {
		text += "; risk " + r.Risk
	}
	if asked(r) {
		text += "; approval " + r.Approval
	}
	if r.Approver != "" {
		text += " by " + r.Approver
	}
	return text
}

func asked(r Record) bool { return r.Approval != "" && r.Approval != "NOT_REQUIRED" }

func cost(r Record) string {
	text := fmt.Sprintf("%d ms", r.DurationMS)
	if r.ResultSize > 0 {
		text += fmt.Sprintf(", %s", size(r.ResultSize))
	}
	if r.Address != "" {
		text += fmt.Sprintf(", %s: %s sent, %s received", r.Address, size(r.BytesSent), size(r.BytesReceived))
	}
	return text
}

func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

// RedactionsLine returns the number of redactions by kind, or "".
func (r Record) RedactionsLine() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Redactions)) {
		parts = append(parts, fmt.Sprintf("%d × %s", r.Redactions[kind], visible.Clip(kind, maxShown)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "redacted " + strings.Join(parts, ", ")
}

// shortTime cuts a time to seconds. It returns other texts unchanged.
func shortTime(t string) string {
	if len(t) < 23 {
		return visible.Clip(t, maxShown)
	}
	return visible.Text(strings.Replace(t[:23], "T", " ", 1))
}
