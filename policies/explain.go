package policies

import (
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// Explain writes what would happen to a call, and which rules, at which lines,
// decide. cure is that of HowToAllow; it may be empty.
func Explain(w io.Writer, req Request, d Decision, cure string) error {
	var b strings.Builder
	verdict := "refused"
	switch {
	case d.Allow && len(d.Approve) > 0:
		verdict = "asks " + strings.Join(d.Approve, " and ") + " first"
		if d.People > 1 {
			verdict += fmt.Sprintf(", %d different persons", d.People)
		}
	case d.Allow:
		verdict = "happens"
	}
	fmt.Fprintf(&b, "%s: %s\n", visible.Text(ToolID(req.Tool.ServerID, req.Tool.Name)), verdict)
	fmt.Fprintf(&b, "  risk %s: %s\n", d.Risk, WhyRisk(req))
	if cure != "" {
		fmt.Fprintf(&b, "  to allow it without a question: %s\n", visible.Text(cure))
	}
	for _, flag := range req.Settings.Flags {
		fmt.Fprintf(&b, "  flagged %s\n", visible.Text(flag.String()))
	}
	explainRules(&b, d)
	_, err := io.WriteString(w, b.String())
	return err
}

// ExplainConnect writes what would happen to a connection, and which rules decide. listed reports whether the
// configuration lists the host, without which no rule is asked.
func ExplainConnect(w io.Writer, c Connection, d Decision, listed bool) error {
	var b strings.Builder
	verdict := "refused"
	switch {
	case !listed:
		verdict = "refused, because the configuration does not list it"
	case d.Allow && len(d.Approve) > 0:
		verdict = "asks " + strings.Join(d.Approve, " and ") + " first"
	case d.Allow:
		verdict = "happens"
	}
	who := "code of " + c.Principal
	if c.Server {
		who = "the contained server " + c.Principal
	}
	fmt.Fprintf(&b, "%s to %s:%d: %s\n", visible.Text(who), visible.Text(c.Host), c.Port, verdict)
	explainRules(&b, d)
	_, err := io.WriteString(w, b.String())
	return err
}

// explainRules writes the rules and reasons of a decision.
func explainRules(b *strings.Builder, d Decision) {
	for _, rule := range d.Rules {
		effect := "permit"
		if rule.Forbid {
			effect = "forbid"
		}
		fmt.Fprintf(b, "  %s %s\n", effect, visible.Text(rule.String()))
	}
	for _, text := range d.Errors {
		fmt.Fprintf(b, "  error in %s\n", visible.Text(text))
	}
	for _, text := range d.Reasons {
		fmt.Fprintf(b, "  because %s\n", visible.Text(text))
	}
}

// HowToAllow returns what the operator can change so that a call to a tool in servers.<id>.allow is not asked about
// because the tool claims to be destructive. It returns "" for other calls, and if the rules do not allow the call with
// a lower risk either.
func (e *Engine) HowToAllow(req Request, d Decision) string {
	if !d.Allow || len(d.Approve) == 0 || d.Risk != RiskCritical || !req.Settings.Allowed {
		return ""
	}
	req.Settings.Risk = RiskHigh
	if lower := e.Decide(req); !lower.Allow || len(lower.Approve) > 0 {
		return ""
	}
	return fmt.Sprintf("servers.%s.allow lists it, but its risk is destructive; lower the risk with "+
		"servers.%s.tools: {%s: {risk: write}}", req.Tool.ServerID, req.Tool.ServerID, req.Tool.Name)
}

// WhyRisk explains the result of EffectiveRisk.
func WhyRisk(req Request) string {
	s, a := req.Settings, req.Tool.Annotations
	switch {
	case s.Risk != RiskUnknown:
		return "the operator says so"
	case isTrue(a.DestructiveHint):
		return "the tool says so"
	case !s.TrustAnnotations && isTrue(a.ReadOnlyHint):
		return "the tool claims to be read-only, but its server's claims are not trusted"
	case !s.TrustAnnotations:
		return "its server's claims are not trusted"
	case a.ReadOnlyHint == nil && a.DestructiveHint == nil:
		return "the tool does not say what it does"
	}
	return "the tool says so, and its server's claims are trusted"
}
