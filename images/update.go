package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// archs are the architectures that images.lock speaks of.
var archs = [...]string{"amd64", "arm64"}

// UpdateLock asks Debian and npm which packages all images would be made of now,
// on every architecture, and returns that as the content of images.lock. It builds
// nothing; a program with the new file embedded does. mirror and index are as in
// BuildOptions.
func UpdateLock(ctx context.Context, mirror, index string, tell io.Writer) ([]byte, error) {
	lock := lockFile{}
	for _, def := range List() {
		for _, arch := range archs {
			say := newProgress(tell, def.Name+" "+arch)
			packages, err := resolve(ctx, def, arch, mirror, index, say)
			say.stop()
			if err != nil {
				return nil, fmt.Errorf("locking image %q for %s: %w", def.Name, arch, err)
			}
			lock[lockKey{image: def.Name, arch: arch}] = packages
		}
	}
	return lock.format(), nil
}

// resolve returns the packages that def is made of.
func resolve(ctx context.Context, def Definition, arch, mirror, index string, say *progress) (packages []Package,
	err error) {
	scratch, err := os.MkdirTemp("", "airlock-lock-")
	if err != nil {
		return nil, err
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	undo.Add(func() error { return os.RemoveAll(scratch) })
	if def.Wheels != nil {
		say.step("resolving Python packages")
		packages, err = lockWheels(ctx, def, arch, index, scratch)
	}
	if err != nil || def.From != "" {
		return packages, err
	}
	packages, err = debianFetch{Debian: def.Debian, arch: arch, mirror: mirror, say: say}.list(ctx, scratch)
	if err != nil {
		return nil, err
	}
	name, err := def.npmPackage(arch)
	if name == "" {
		return packages, err
	}
	say.step(fmt.Sprintf("asking npm for %s %s", name, def.NPM.Version))
	digest, err := npmIntegrity(ctx, name+"@"+def.NPM.Version, scratch)
	if err != nil {
		return nil, err
	}
	return append(packages, Package{Source: FromNPM, Name: name, Version: def.NPM.Version, Digest: digest}), nil
}

// npmIntegrity asks npm's registry for a package's digest. dir is the working directory.
func npmIntegrity(ctx context.Context, spec, dir string) (string, error) {
	program, err := findTool("npm", "npm")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "view", "--silent", spec, "dist.integrity")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("npm could not look up %q: %w\n  %s", spec, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
