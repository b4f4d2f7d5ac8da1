package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

const module = "github.com/airlock-mcp/airlock/"

// file is one Go file of the project.
type file struct {
	path      string // relative to the root, with slashes
	directory string // its package's directory
	isTest    bool
	lines     int
	syntax    *ast.File
	set       *token.FileSet
}

// at names the place of a node as path:line.
func (f file) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(node.Pos()).Line)
}

// imports returns the paths that the file imports.
func (f file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

// project parses every Go file of this module. Nested modules, test data and
// hidden directories are not part of it.
func project(t *testing.T) []file {
	t.Helper()
	root := testenv.RepoRoot(t)
	var files []file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDirectory(path, rel, entry.Name())
		}
		if filepath.Ext(path) == ".go" {
			files = append(files, parse(t, path, filepath.ToSlash(rel)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("found %d Go files: the rules would check next to nothing", len(files))
	}
	return files
}

func skipDirectory(path, rel, name string) error {
	if rel == "." {
		return nil
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	if err == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin" {
		return filepath.SkipDir
	}
	return nil
}

func parse(t *testing.T, path, rel string) file {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file{
		path: rel, directory: filepath.ToSlash(filepath.Dir(rel)),
		isTest: strings.HasSuffix(rel, "_test.go"), lines: strings.Count(string(source), "\n"),
		syntax: syntax, set: set,
	}
}
