package images

import (
	"context"
	_ "embed"
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
	args := []string{"-m", "compileall", "-q", "-f", "-p", "/", "--invalidation-mode", "unchecked-hash"}
	cmd, err := pythonOf(ctx, rootFS, append(args, directories...)...)
	if err != nil {
		return fmt.Errorf("compiling Python files: %w", err)
	}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return &compileError{err, strings.TrimSpace(string(out))}
	}
	return nil
}

// pythonOf is a command of the interpreter in rootFS, without the packages there.
func pythonOf(ctx context.Context, rootFS string, args ...string) (*exec.Cmd, error) {
	loaders, err := filepath.Glob(filepath.Join(rootFS, "usr/lib/*-linux-gnu/ld-linux-*.so.*"))
	if err != nil || len(loaders) != 1 {
		return nil, fmt.Errorf("want one program loader in %q, got %q", rootFS, loaders)
	}
	start := []string{"--library-path", filepath.Dir(loaders[0]), filepath.Join(rootFS, "usr/bin/python3"), "-P", "-S",
		"-s"}
	cmd := exec.CommandContext(ctx, loaders[0], append(start, args...)...)
	cmd.Env = []string{"PYTHONHOME=" + filepath.Join(rootFS, "usr"), "PYTHONHASHSEED=0", "LC_ALL=C.UTF-8"}
	return cmd, nil
}

// bundler is the program that writes a bundle.
//
//go:embed bundle.py
var bundler string

// writeBundle writes what the guest of the Python image loads at its start into one
// file of tree, in which all is compiled. The code of packages has no part in that.
func writeBundle(ctx context.Context, rootFS, tree string) error {
	cmd, err := pythonOf(ctx, rootFS, "-B", "-c", bundler, rootFS, tree)
	if err != nil {
		return fmt.Errorf("writing the bundle of modules: %w", err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("writing the bundle of modules: %w: %.2000s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// compileError lists the files that do not compile.
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
// that are not Python of this version, such as templates: those stay as they are.
func compilePackages(ctx context.Context, rootFS, tree string) error {
	err := compilePython(ctx, rootFS, tree, []string{sitePackages})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil
	}
	return err
}
