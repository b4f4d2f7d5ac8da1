package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// trufflehogExamples reads the tests of the detectors of TruffleHog, without running them. An example
// is a text with the results that its test expects. Texts without a result are left out: they show the
// limits of one expression, and most contain a value next to the name of its service.
func trufflehogExamples(ctx context.Context, _ string) (set, error) {
	m := module{"github.com/trufflesecurity/trufflehog/v3", "v3.90.0",
		"h1:Q8DMp6K8R4Xpn7md7tR33mfgRAmr0GnEXZVLnLrQczU="}
	root, err := m.fetch(ctx)
	if err != nil {
		return set{}, err
	}
	files, err := filepath.Glob(filepath.Join(root, "pkg", "detectors", "*", "*_test.go"))
	if err != nil {
		return set{}, err
	}
	nested, err := filepath.Glob(filepath.Join(root, "pkg", "detectors", "*", "*", "*_test.go"))
	if err != nil {
		return set{}, err
	}
	var examples []example
	for _, path := range append(files, nested...) {
		if strings.Contains(path, "integration") { // calls the vendors, and has no text
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return set{}, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return set{}, fmt.Errorf("reading the tests of TruffleHog: %w", err)
		}
		examples = append(examples, examplesIn(file)...)
	}
	return set{name: "trufflehog", examples: unique(examples)}, nil
}

// examplesIn returns the composite literals of a file that have an input and expected results.
func examplesIn(file *ast.File) []example {
	values := constants{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					values.set(name.Name, n.Values[i])
				}
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Rhs) == 1 {
				values.set(name.Name, n.Rhs[0])
			}
		}
		return true
	})
	var examples []example
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		e := example{Name: file.Name.Name}
		for _, element := range literal.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			name, _ := pair.Key.(*ast.Ident)
			switch list, isList := pair.Value.(*ast.CompositeLit); {
			case name == nil:
			case name.Name == "input" || name.Name == "data":
				e.Text, _ = values.text(pair.Value)
			case name.Name == "want" && isList:
				for _, item := range list.Elts {
					if secret, ok := values.text(item); ok {
						e.Secrets = append(e.Secrets, secret)
					}
				}
			}
		}
		e.Secrets = e.withinText()
		if len(e.Secrets) > 0 {
			examples = append(examples, e)
		}
		return true
	})
	return examples
}

// withinText returns the secrets that occur in the text. A result that consists of a secret and the
// identifier that belongs to it is replaced with its parts.
func (e example) withinText() []string {
	var found []string
	for _, secret := range e.Secrets {
		if strings.Contains(e.Text, secret) {
			found = append(found, secret)
			continue
		}
		for _, part := range strings.FieldsFunc(secret, func(r rune) bool {
			return strings.ContainsRune(`:;,| {}"`, r)
		}) {
			if len(part) >= 12 && strings.Contains(e.Text, part) {
				found = append(found, part)
			}
		}
	}
	return found
}

// constants are the values of names in a file.
type constants map[string]string

func (c constants) set(name string, e ast.Expr) {
	if text, ok := c.text(e); ok {
		c[name] = text
	}
}

// text evaluates an expression of constants, sums and calls of fmt.Sprintf.
func (c constants) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := c[e.Name]
		return text, ok
	case *ast.ParenExpr:
		return c.text(e.X)
	case *ast.BinaryExpr:
		left, ok := c.text(e.X)
		right, both := c.text(e.Y)
		return left + right, ok && both
	case *ast.CallExpr:
		if function, ok := e.Fun.(*ast.SelectorExpr); !ok || function.Sel.Name != "Sprintf" {
			return "", false
		}
		format, ok := c.text(e.Args[0])
		args := make([]any, len(e.Args)-1)
		for i, arg := range e.Args[1:] {
			text, known := c.text(arg)
			args[i], ok = text, ok && known
		}
		return fmt.Sprintf(format, args...), ok
	}
	return "", false
}
