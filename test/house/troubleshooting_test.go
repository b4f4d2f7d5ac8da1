package house_test

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codes is a set of codes that users see.
type codes map[string]bool

// literal returns the value of a string literal.
func literal(node ast.Node) (string, bool) {
	basic, ok := node.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// matching adds the literals of the packages below a directory that match the pattern.
func (c codes) matching(files []file, directory, pattern string) {
	matches := regexp.MustCompile(`^(?:` + pattern + `)$`)
	c.visit(files, directory, func(node ast.Node) {
		if value, ok := literal(node); ok && matches.MatchString(value) {
			c[value] = true
		}
	})
}

// visit calls f for each node of the code below a directory, without tests.
func (codes) visit(files []file, directory string, f func(ast.Node)) {
	for _, file := range files {
		if strings.HasPrefix(file.path, directory) && !strings.HasSuffix(file.path, "_test.go") {
			ast.Inspect(file.syntax, func(node ast.Node) bool {
				f(node)
				return true
			})
		}
	}
}

// httpCode matches the codes of answers over HTTP.
var httpCode = regexp.MustCompile(`^[a-z]+(?:_[a-z]+)*$`)

// http adds the codes of answers over HTTP: the argument of problem.Write, the members of refusals, and what is
// assigned to or returned as a code.
func (c codes) http(files []file, directory string) {
	add := func(node ast.Node) {
		if value, ok := literal(node); ok && httpCode.MatchString(value) {
			c[value] = true
		}
	}
	isCode := func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			return strings.EqualFold(node.Name, "code")
		case *ast.SelectorExpr:
			return strings.EqualFold(node.Sel.Name, "code")
		}
		return false
	}
	c.visit(files, directory, func(node ast.Node) {
		switch node := node.(type) {
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Write" && len(node.Args) == 4 {
				add(node.Args[2])
			}
		case *ast.CompositeLit:
			name, ok := node.Type.(*ast.Ident)
			if ok && strings.EqualFold(name.Name, "refusal") && len(node.Elts) > 1 {
				add(node.Elts[1])
			}
		case *ast.KeyValueExpr:
			if isCode(node.Key) {
				add(node.Value)
			}
		case *ast.AssignStmt:
			for i, left := range node.Lhs {
				if isCode(left) && len(node.Rhs) == len(node.Lhs) {
					add(node.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			if len(node.Names) == 1 && node.Names[0].Name == "refusalCodes" {
				for _, element := range node.Values[0].(*ast.CompositeLit).Elts {
					add(element.(*ast.KeyValueExpr).Value)
				}
			}
		case *ast.ReturnStmt:
			if directory == "internal/problem/" && len(node.Results) == 2 {
				add(node.Results[1])
			}
		}
	})
}

var (
	row  = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	span = regexp.MustCompile("`([^`]+)`")
)

// tabled returns the code spans in the first column of the tables in a section of a page.
func tabled(t *testing.T, page, section string) codes {
	t.Helper()
	_, rest, ok := strings.Cut(string(read(t, "docs", page)), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("docs/%s has no section %q", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	found := codes{}
	for _, cell := range row.FindAllStringSubmatch(rest, -1) {
		for _, code := range span.FindAllStringSubmatch(cell[1], -1) {
			found[code[1]] = true
		}
	}
	return found
}

// docs/troubleshooting.md has the cause and the cure of every code that users and models see, and no other code
// (issue 27).
func TestEveryCodeHasACure(t *testing.T) {
	files := project(t)
	types := tabled(t, "contract.md", "Error types")
	types.visit(files, "internal/errortype/", func(node ast.Node) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || strings.HasPrefix(spec.Names[0].Name, "Source") {
			return
		}
		for _, value := range spec.Values {
			if name, ok := literal(value); ok && !types[name] {
				t.Errorf("docs/contract.md lacks the error type %s", name)
			}
		}
	})

	limits, agents, gateway, answers := codes{}, codes{}, codes{}, codes{}
	for _, directory := range []string{"admission/", "app/orchestrator/"} {
		limits.matching(files, directory, `(?:limits|sandbox|script)\.[a-zA-Z]+`)
	}
	agents.matching(files, "", `QWED-AGENT-[A-Z]+-\d+`)
	gateway.matching(files, "", `QWED-MCP-[A-Z]+-\d+`)
	for _, directory := range []string{"app/api/", "app/auth/", "app/daemon/", "app/server/", "internal/problem/"} {
		answers.http(files, directory)
	}

	checks, named := codes{"server NAME": true}, map[string]string{}
	checks.visit(files, "app/cli/doctor/", func(node ast.Node) {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if value, ok := literal(spec.Values[0]); ok {
				named[spec.Names[0].Name] = value
			}
		}
	})
	checks.visit(files, "app/cli/doctor/checks.go", func(node ast.Node) {
		member, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		if key, ok := member.Key.(*ast.Ident); !ok || key.Name != "name" {
			return
		}
		if value, ok := literal(member.Value); ok {
			checks[value] = true
		} else if name, ok := member.Value.(*ast.Ident); ok && named[name.Name] != "" {
			checks[named[name.Name]] = true
		} else {
			checks["image NAME"] = true
		}
	})

	for section, want := range map[string]codes{
		"Error types of runs and calls": types, "Limits": limits, "Checks of `airlock doctor`": checks,
		"Codes over HTTP": answers, "Codes of agents": agents, "Codes of the gateway": gateway,
	} {
		if len(want) < 8 {
			t.Errorf("%s: found %d codes in the source: the test checks next to nothing", section, len(want))
		}
		got := tabled(t, "troubleshooting.md", section)
		for _, code := range slices.Sorted(maps.Keys(want)) {
			if !got[code] {
				t.Errorf("docs/troubleshooting.md, %s: %q is missing", section, code)
			}
		}
		for _, code := range slices.Sorted(maps.Keys(got)) {
			if !want[code] {
				t.Errorf("docs/troubleshooting.md, %s: %q is not a code of the source", section, code)
			}
		}
	}
}
