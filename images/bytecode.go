package images

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// compilePython writes Python bytecode for the files below the given directories of
// dir, with the interpreter of the root file system rootFS. The bytecode is of the
// kind "unchecked hash" (PEP 552): it depends on nothing but the source, and no
// start compares it with the source.
//
// The interpreter runs with its own loader and libraries instead of in a chroot,
// which would need root.
func compilePython(ctx context.Context, rootFS, dir string, directories []string) error {
	loaders, err := filepath.Glob(filepath.Join(rootFS, "usr/lib/*-linux-gnu/ld-linux-*.so.*"))
	if err != nil || len(loaders) != 1 {
		return fmt.Errorf("compiling Python files: want one program loader in %q, got %q", rootFS, loaders)
	}
	args := []string{
		"--library-path", filepath.Dir(loaders[0]), filepath.Join(rootFS, "usr/bin/python3"),
		"-P", "-S", "-s", "-m", "compileall", "-q", "-f", "-p", "/", "--invalidation-mode", "unchecked-hash",
	}
	cmd := exec.CommandContext(ctx, loaders[0], append(args, directories...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PYTHONHOME=" + filepath.Join(rootFS, "usr"), "PYTHONHASHSEED=0", "LC_ALL=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return &compileError{err, strings.TrimSpace(string(out))}
	}
	return nil
}

// compileError says which files do not compile.
type compileError struct {
	err  error
	said string
}

// Error begins with the first files.
func (e *compileError) Error() string {
	return fmt.Sprintf("compiling Python files: %v\n  %.2000s", e.err, e.said)
}

// Unwrap returns how the compiler ended.
func (e *compileError) Unwrap() error { return e.err }

// compilePackages compiles the packages of other authors below tree. Some ship files
// that are no Python of this version, such as templates: those stay as they are.
func compilePackages(ctx context.Context, rootFS, tree string) error {
	err := compilePython(ctx, rootFS, tree, []string{sitePackages})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	return err
}
