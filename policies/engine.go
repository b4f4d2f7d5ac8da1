package policies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// File is one policy file.
type File struct {
	Name   string // as messages show it
	Source []byte // Cedar policies
}

// Rule is one policy of a file.
type Rule struct {
	ID     string // its @id, or file:line
	File   string
	Line   int
	Forbid bool
}

// String shows the rule as a person finds it. The ID of a rule without @id is its place already.
func (r Rule) String() string {
	place := fmt.Sprintf("%s:%d", r.File, r.Line)
	if r.ID == place {
		return place
	}
	return fmt.Sprintf("%s (%s)", r.ID, place)
}

// Engine holds compiled rules, which do not change. It may be used concurrently.
// A nil Engine denies everything.
type Engine struct {
	rules *cedar.PolicySet
	// connects are the rules of DecideConnect: all forbids, and the permits that name its action.
	connects *cedar.PolicySet
	info     map[cedar.PolicyID]rule
	// The operations of all rules, the number of comparisons among them, and the sum of their chunks.
	operations          []operation
	comparisons, chunks int
	session             bool // a rule may read context.session
	version             string
	roles               []string // see WithRoles
	parties             partiesCache
	schemas             schemaCache
	acts                actCache
}

type rule struct {
	Rule
	reason      string
	named       string // @policy: the name that requests choose it by
	obligations []obligation
}

// Load compiles the files, all or none of them.
func Load(files ...File) (*Engine, error) {
	e := &Engine{rules: cedar.NewPolicySet(), connects: cedar.NewPolicySet(), info: map[cedar.PolicyID]rule{}}
	var errs []error
	digest := &strings.Builder{}
	for _, file := range files {
		errs = append(errs, e.add(file))
		fmt.Fprintf(digest, "%q %s\n", file.Name, canon.Digest(file.Source))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(e.info) == 0 {
		return nil, errors.New("there is no policy in the policy files: everything would be denied")
	}
	e.version = canon.Digest([]byte(digest.String()))
	return e, nil
}

func (e *Engine) add(file File) error {
	list, err := parse(file)
	if err != nil {
		return err
	}
	for _, policy := range list {
		at := policy.Position()
		r := rule{Rule: Rule{File: file.Name, Line: at.Line, Forbid: policy.Effect() == cedar.Forbid}}
		r.ID = fmt.Sprintf("%s:%d", file.Name, at.Line)
		for key, value := range policy.Annotations() {
			switch key {
			case "id":
				r.ID = string(value)
			case "reason":
				r.reason = string(value)
			case "policy":
				r.named = string(value)
			case "description":
			default:
				r.obligations = append(r.obligations, obligation{string(key), string(value)})
			}
		}
		if first, taken := e.info[cedar.PolicyID(r.ID)]; taken {
			return fmt.Errorf("policy file %q line %d: the id %q is also at %s:%d", file.Name, at.Line, r.ID,
				first.File, first.Line)
		}
		e.info[cedar.PolicyID(r.ID)] = r
		e.rules.Add(cedar.PolicyID(r.ID), policy)
		e.session = e.session || readsSession(policy)
		for _, o := range operationsOf(policy) {
			e.operations = append(e.operations, o)
			if e.chunks += o.chunk; o.chunk == 0 {
				e.comparisons++
			}
		}
		if r.Forbid || namesConnect(policy) {
			e.connects.Add(cedar.PolicyID(r.ID), policy)
		}
	}
	return nil
}

// Version is the digest of all rules: an approval given under one version does
// not hold under another.
func (e *Engine) Version() string {
	if e == nil {
		return ""
	}
	return e.version
}

// ReadsSession reports whether any rule may depend on the Session of a request. If none does, decisions are the same
// for every Session.
func (e *Engine) ReadsSession() bool { return e != nil && e.session }

// Rules lists all rules by file and line.
func (e *Engine) Rules() []Rule {
	if e == nil {
		return nil
	}
	rules := make([]Rule, 0, len(e.info))
	for _, r := range e.info {
		rules = append(rules, r.Rule)
	}
	sortRules(rules)
	return rules
}

func sortRules(rules []Rule) {
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.ID, b.ID))
	})
}
