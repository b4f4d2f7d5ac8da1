package house_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"testing"
)

// The most lines a file may have. One idea takes 100 to 300.
const maxLines = 800

func TestFilesStayShort(t *testing.T) {
	for _, f := range project(t) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines, at most %d: split it by idea", f.path, f.lines, maxLines)
		}
	}
}

// The maximum number of fields of a struct. A larger one has several parts: each part should
// be a separate struct.
const maxFields = 18

// kernelStructs are structs whose fields a protocol of the kernel dictates.
var kernelStructs = []string{"runner/runsc/brokerfs/handle.go statx"}

func TestStructsStaySmall(t *testing.T) {
	for _, f := range project(t) {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if ok && s.Fields.NumFields() > maxFields && !slices.Contains(kernelStructs, f.path+" "+spec.Name.Name) {
				t.Errorf("%s: struct %s has %d fields, at most %d: split it by who writes them", f.at(spec),
					spec.Name.Name, s.Fields.NumFields(), maxFields)
			}
			return true
		})
	}
}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	for _, f := range project(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "manager", "misc", "base"},
			path.Base(f.directory)) {
			t.Errorf("%s: the package's name says nothing", f.path)
		}
	}
}

func TestNothingHappensOnImport(t *testing.T) {
	for _, f := range project(t) {
		for _, decl := range f.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				t.Errorf("%s: init hides work in an import", f.at(d))
			}
		}
	}
}

func TestContextIsAParameter(t *testing.T) {
	for _, f := range project(t) {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			s, ok := node.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if isSelector(field.Type, "context", "Context") {
					t.Errorf("%s: a context in a struct outlives the call it belongs to", f.at(field))
				}
			}
			return true
		})
	}
}

func TestLogsCarryTheirContext(t *testing.T) {
	calls := 0
	for _, f := range project(t) {
		if f.isTest {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch selector.Sel.Name {
			case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
				calls++
			case "Debug", "Info", "Warn", "Error":
				if isIdent(selector.X, "slog") || isField(selector.X, "logger", "Logger", "log") {
					t.Errorf("%s: log through the Context variant of the logger you were given", f.at(selector))
				}
			}
			return true
		})
	}
	if calls == 0 {
		t.Error("found no log call: the rule checks nothing")
	}
}

func TestErrorsAreComparedThroughWrapping(t *testing.T) {
	for _, f := range project(t) {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			b, ok := node.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ {
				return true
			}
			for _, side := range []ast.Expr{b.X, b.Y} {
				if isSentinel(side) {
					t.Errorf("%s: compare errors with errors.Is", f.at(b))
				}
			}
			return true
		})
	}
}

// isSentinel reports expressions that name an error value, such as io.EOF or ErrBusy.
func isSentinel(expr ast.Expr) bool {
	if isSelector(expr, "io", "EOF") {
		return true
	}
	name := ""
	switch e := expr.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return len(name) > 3 && name[:3] == "Err" && ast.IsExported(name) && name[3] >= 'A' && name[3] <= 'Z'
}

func isSelector(expr ast.Expr, pkg, name string) bool {
	s, ok := expr.(*ast.SelectorExpr)
	return ok && isIdent(s.X, pkg) && s.Sel.Name == name
}

func isIdent(expr ast.Expr, name string) bool {
	ident, ok := expr.(*ast.Ident)
	return ok && ident.Name == name
}

func isField(expr ast.Expr, names ...string) bool {
	switch e := expr.(type) {
	case *ast.Ident:
		return slices.Contains(names, e.Name)
	case *ast.SelectorExpr:
		return slices.Contains(names, e.Sel.Name)
	}
	return false
}
