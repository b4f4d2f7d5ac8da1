package policies

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// typeProblem returns what Cedar's own validator has against a policy, for the
// tools it can match: a comparison that can never work, or an argument that is
// used without testing for it. Each would be an error at run time, and an error
// denies. "" when there is nothing, or when an argument has no type to check.
func typeProblem(policy *cedar.Policy, refs references, tools []*toolShape) string {
	for _, path := range refs.paths {
		if len(path) < 3 || path[0] != "context" || path[1] != "input" {
			continue
		}
		if slices.ContainsFunc(tools, func(t *toolShape) bool { return !typed(t.input, path[2:]) }) {
			return ""
		}
	}
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(schemaText(distinct(tools, refs)))); err != nil {
		return "" // a tool's names can be so strange that Cedar's schemas cannot hold them
	}
	resolved, err := s.Resolve()
	if err != nil {
		return ""
	}
	p := *(*ast.Policy)(policy.AST())
	p.Principal, p.Action, p.Resource = ast.ScopeTypeAll{}, ast.ScopeTypeAll{}, ast.ScopeTypeAll{} // names were checked before
	if err := validate.New(resolved, validate.WithPermissive()).Policy("", &p); err != nil {
		return fmt.Sprintf("it could err, which denies: %s", firstLine.FindString(err.Error()))
	}
	return ""
}

var firstLine = regexp.MustCompile(`^[^\n]{0,300}`)

// distinct leaves one tool of those whose arguments have one type, because the
// validator looks at each policy once for every tool.
func distinct(tools []*toolShape, refs references) []*toolShape {
	if !slices.ContainsFunc(refs.paths, func(path []string) bool { return len(path) > 2 && path[1] == "input" }) {
		return tools[:min(1, len(tools))]
	}
	seen := map[string]bool{}
	var left []*toolShape
	for _, tool := range tools {
		shape, _ := cedarType(tool.input, maxTypeDepth)
		if !seen[shape] {
			seen[shape] = true
			left = append(left, tool)
		}
	}
	return left
}
