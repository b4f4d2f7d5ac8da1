package house_test

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

func TestEveryPackageAndExportedNameIsExplained(t *testing.T) {
	packages := map[string]bool{}
	exported := 0
	for _, f := range project(t) {
		if f.isTest {
			continue
		}
		name := f.syntax.Name.Name
		start := "Package " + name
		if name == "main" {
			start = "Command "
		}
		explains := f.syntax.Doc != nil && strings.HasPrefix(f.syntax.Doc.Text(), start)
		if explains && name != "main" && path.Base(f.path) != name+".go" {
			t.Errorf("%s: the package comment belongs into %s.go, where readers look for it", f.path, name)
		}
		packages[f.directory] = packages[f.directory] || explains
		for _, decl := range f.syntax.Decls {
			exported += checkDecl(t, f, decl)
		}
	}
	for directory, explained := range packages {
		if !explained {
			t.Errorf("%s: no file has a package comment that starts with what the package is for", directory)
		}
	}
	if exported < 100 {
		t.Errorf("checked %d exported names: the rule found next to nothing", exported)
	}
}

// checkDecl reports exported names without a comment and returns how many
// exported names it saw.
func checkDecl(t *testing.T, f file, decl ast.Decl) int {
	t.Helper()
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || !ast.IsExported(receiver(d)) {
			return 0
		}
		if d.Doc == nil {
			t.Errorf("%s: func %s has no comment", f.at(d), d.Name.Name)
		}
		return 1
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return 0
		}
		seen := 0
		for _, spec := range d.Specs {
			for _, name := range exportedNames(spec) {
				seen++
				if !commented(d, spec) {
					t.Errorf("%s: %s has no comment", f.at(spec), name)
				}
			}
		}
		return seen
	}
	return 0
}

// receiver returns the type name that a method belongs to, or "F" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return "F"
	}
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "F"
		}
	}
}

func exportedNames(spec ast.Spec) []string {
	var found []string
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			found = append(found, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				found = append(found, name.Name)
			}
		}
	}
	return found
}

// commented accepts a comment of the spec or, for a group such as an
// enumeration, of the whole declaration.
func commented(d *ast.GenDecl, spec ast.Spec) bool {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc != nil || !d.Lparen.IsValid() && d.Doc != nil
	case *ast.ValueSpec:
		return s.Doc != nil || s.Comment != nil || d.Doc != nil
	}
	return false
}
