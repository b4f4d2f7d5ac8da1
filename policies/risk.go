package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// Risk is how much harm an act can do at worst. It is the one scale of Airlock: operators, rules about tools,
// agents, the kernel and the gateway have words for its values.
type Risk int

// The risks. RiskUnknown, the zero value, is that of a tool of which nothing is known; it counts as RiskHigh.
const (
	RiskUnknown  Risk = iota
	RiskLow           // reads, or computes
	RiskMedium        // reaches people or services
	RiskHigh          // changes data
	RiskCritical      // destroys, or executes code
)

// String returns the word that rules about tools see in resource.risk.
func (r Risk) String() string {
	switch r {
	case RiskUnknown:
		return "unknown"
	case RiskLow:
		return "read"
	case RiskMedium, RiskHigh:
		return "write"
	}
	return "destructive"
}

var levels = []string{"LOW", "MEDIUM", "HIGH", "CRITICAL"}

// Level returns the word that agents and rules about them see.
func (r Risk) Level() string { return levels[min(r.number(), len(levels)-1)] }

// number is the level as rules about agents compare it, from 0.
func (r Risk) number() int { return int(r.Known()) - int(RiskLow) }

// Known returns the risk to decide by: RiskHigh for RiskUnknown.
func (r Risk) Known() Risk {
	if r <= RiskUnknown {
		return RiskHigh
	}
	return r
}

// ParseRisk reads the word that an operator wrote for a tool.
func ParseRisk(word string) (Risk, error) {
	for _, r := range []Risk{RiskLow, RiskHigh, RiskCritical} {
		if word == r.String() {
			return r, nil
		}
	}
	return RiskUnknown, fmt.Errorf("risk %q is not one of read, write, destructive", word)
}

// ParseLevel reads the word that Level returns.
func ParseLevel(word string) (Risk, error) {
	if i := slices.Index(levels, word); i >= 0 {
		return RiskLow + Risk(i), nil
	}
	return RiskUnknown, fmt.Errorf("risk %q is not one of %s", word, strings.Join(levels, ", "))
}

// riskWords are the values of resource.risk in rules about tools.
func riskWords() []string {
	return []string{RiskLow.String(), RiskHigh.String(), RiskCritical.String(), RiskUnknown.String()}
}

// Settings is the operator's configuration of one tool. The zero value grants nothing.
type Settings struct {
	TrustAnnotations bool     // of the tool's server: its claims may lower the risk
	Allowed          bool     // the operator lets it run without asking
	Denied           bool     // the operator never lets it run
	Risk             Risk     // overrides what the tool claims, unless RiskUnknown
	SQL              []string // the parameters that contain SQL
	// Flags are what is suspicious about its definition: it hides characters,
	// speaks to the model, or poses as another's.
	Flags []catalog.Flag
}

// EffectiveRisk combines the operator's configuration with the tool's claims. Claims
// raise the risk for every server; they lower it only for a trusted one. A tool
// that claims to be both read-only and destructive is destructive. Resources and prompts have risk
// read.
func EffectiveRisk(tool catalog.Tool, s Settings) Risk {
	if s.Risk != RiskUnknown {
		return s.Risk
	}
	if tool.IsRead() { // by the protocol; a server makes no claims about it
		return RiskLow
	}
	a := tool.Annotations
	switch {
	case isTrue(a.DestructiveHint):
		return RiskCritical
	case !s.TrustAnnotations:
		return RiskUnknown
	case isTrue(a.ReadOnlyHint):
		return RiskLow
	case a.DestructiveHint != nil: // false: it only adds
		return RiskHigh
	default:
		return RiskUnknown
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }
