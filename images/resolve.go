package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// ResolveOptions configure Resolve.
type ResolveOptions struct {
	Progress io.Writer // gets a line for each step; nil for none
	Index    string    // the URL of the Python package index; empty: pip's configuration
	Registry string    // the URL of the npm registry; empty: npm's configuration
	Upgrade  bool      // take newer versions for all architectures
}

// Resolve resolves the wanted packages of a language and their dependencies to files, and
// returns the lock with these. Files that are locked for another architecture stay if the same
// packages are wanted. It returns a *PackageError for a package that cannot be installed.
func (l PackageLock) Resolve(ctx context.Context, language string, wanted []string, opts ResolveOptions) (_ PackageLock,
	err error) {
	if err := checkRequirements(language, wanted); err != nil {
		return l, &PackageError{err.Error(), "correct it in the configuration, under images." + language + ".packages"}
	}
	say := newProgress(opts.Progress, language)
	defer say.stop()
	scratch, err := os.MkdirTemp("", "airlock-packages-")
	if err != nil {
		return l, err
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	undo.Add(func() error { return os.RemoveAll(scratch) })
	if language == "node" {
		say.step("resolving npm packages")
		lock, err := resolveModules(ctx, wanted, opts.Registry, scratch)
		if err != nil {
			return l, err
		}
		scripted, err := checkModules(lock)
		if err != nil {
			return l, err
		}
		for _, name := range scripted {
			say.step(fmt.Sprintf("the package %s has an installation script, which is not run: look whether it works",
				name))
		}
		l.Node = &NodeLock{Wanted: wanted, PackageLock: lock}
		return l, nil
	}
	return l.resolveWheels(ctx, wanted, opts, scratch, say)
}

func (l PackageLock) resolveWheels(ctx context.Context, wanted []string, opts ResolveOptions, scratch string,
	say *progress) (PackageLock, error) {
	made := &PythonLock{Wanted: wanted, Wheels: map[string][]Package{}}
	if l.Python != nil && !opts.Upgrade && slices.Equal(l.Python.Wanted, wanted) {
		maps.Copy(made.Wheels, l.Python.Wheels)
	}
	for _, arch := range archs {
		if arch != hostArch && len(made.Wheels[arch]) > 0 {
			continue
		}
		say.step("resolving Python packages for " + arch)
		dir, err := os.MkdirTemp(scratch, "")
		if err != nil {
			return l, err
		}
		found, err := pip{arch: arch, index: opts.Index}.resolve(
			ctx, []byte(strings.Join(wanted, "\n")+"\n"), false, dir)
		var missing *PackageError
		switch {
		case err == nil:
			made.Wheels[arch] = found
		case arch == hostArch || !errors.As(err, &missing):
			return l, err
		default:
			say.step("not locked for " + arch + ": " + missing.Problem)
		}
	}
	l.Python = made
	return l, nil
}
