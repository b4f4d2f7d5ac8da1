package policies

import (
	"fmt"

	"github.com/airlock-mcp/airlock/catalog"
)

// Risk is what a tool can do at worst. The zero value is the careful one.
type Risk string

// The risks. Unknown is treated like a tool that changes things.
const (
	RiskUnknown     Risk = ""
	RiskRead        Risk = "read"
	RiskWrite       Risk = "write"
	RiskDestructive Risk = "destructive"
)

// String returns the word that policies see in resource.risk.
func (r Risk) String() string {
	if r == RiskUnknown {
		return "unknown"
	}
	return string(r)
}

// ParseRisk reads the word an operator wrote.
func ParseRisk(word string) (Risk, error) {
	switch r := Risk(word); r {
	case RiskRead, RiskWrite, RiskDestructive:
		return r, nil
	}
	return RiskUnknown, fmt.Errorf("risk %q is none of read, write, destructive", word)
}

// Settings is what the operator says about one tool. The zero value grants nothing.
type Settings struct {
	TrustAnnotations bool // of the tool's server: its claims may lower the risk
	Allowed          bool // the operator lets it run without asking
	Denied           bool // the operator never lets it run
	Risk             Risk // overrides what the tool claims, unless RiskUnknown
	// Flags are what is suspicious about its definition: it hides characters,
	// speaks to the model, or poses as another's.
	Flags []catalog.Flag
}

// EffectiveRisk joins what the operator says with what the tool claims. Claims
// raise the risk for every server; they lower it only for a trusted one. A tool
// that claims to be both read-only and destructive is destructive.
func EffectiveRisk(tool catalog.Tool, s Settings) Risk {
	if s.Risk != RiskUnknown {
		return s.Risk
	}
	a := tool.Annotations
	switch {
	case isTrue(a.DestructiveHint):
		return RiskDestructive
	case !s.TrustAnnotations:
		return RiskUnknown
	case isTrue(a.ReadOnlyHint):
		return RiskRead
	case a.DestructiveHint != nil: // false: it only adds
		return RiskWrite
	default:
		return RiskUnknown
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }
