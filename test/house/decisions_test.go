package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// deciding are the methods that decide: policies.Engine.Decide and DecideAct, policies.Named.Decide. Methods of other
// types with the name Decide take a context and an act.
var deciding = []string{"Decide", "DecideAct"}

// Only admission decides who may do what (issue 25): no other package evaluates policies, and no other package
// decides what an agent may do.
func TestOnlyAdmissionDecides(t *testing.T) {
	decisions := 0
	for _, f := range project(t) {
		if f.isTest || f.directory == "policies" || strings.HasPrefix(f.path, "test/") {
			continue
		}
		called := map[ast.Node]bool{} // methods that are called with a context
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				called[node.Fun] = len(node.Args) == 2
			case *ast.SelectorExpr:
				if !slices.Contains(deciding, node.Sel.Name) || called[node] {
					break
				}
				if f.directory == "admission" {
					decisions++
				} else {
					t.Errorf("%s: only admission evaluates policies: build an admission.Act and call Decide",
						f.at(node))
				}
			}
			return true
		})
	}
	if decisions != len(deciding)+2 {
		t.Errorf("admission evaluates policies at %d places, want one for calls, one for explanations, one for agents "+
			"and one for the kernel", decisions)
	}
}
