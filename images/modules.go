package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// nodeModules is where npm packages are in an image: where Node looks for them last,
// from any directory.
const nodeModules = "node_modules"

// npmCPUs are npm's names of architectures, by Go's.
var npmCPUs = map[string]string{"amd64": "x64", "arm64": "arm64"}

// moduleLock is the part that is read of npm's lock file, version 3 (package-lock.json).
type moduleLock struct {
	Version  int                     `json:"lockfileVersion"`
	Packages map[string]lockedModule `json:"packages"` // by their place below the project
}

type lockedModule struct {
	Version   string `json:"version"`
	Resolved  string `json:"resolved"` // an address, of what is in no registry
	Integrity string `json:"integrity"`
	Link      bool   `json:"link"`
	Scripts   bool   `json:"hasInstallScript"`
	Bundled   bool   `json:"inBundle"`
}

// checkModules returns an error if npm's lock file has a package without a digest. It returns
// the names of the packages that have installation scripts.
func checkModules(text []byte) (scripted []string, err error) {
	var lock moduleLock
	if err := strictjson.UnmarshalOpen(text, &lock); err != nil {
		return nil, fmt.Errorf("reading npm's lock: %w", err)
	}
	if lock.Version != 3 {
		return nil, fmt.Errorf("npm's lock has the version %d, want 3", lock.Version)
	}
	for place, module := range lock.Packages {
		_, name := cutLast(place, nodeModules+"/")
		switch {
		case place == "" || module.Bundled:
			continue
		case !strings.HasPrefix(place, nodeModules+"/") || !filepath.IsLocal(place) || module.Link,
			!strings.HasPrefix(module.Integrity, "sha512-") && !strings.HasPrefix(module.Integrity, "sha1-"),
			module.Resolved != "":
			return nil, &PackageError{fmt.Sprintf(
				"the npm package %.100q does not come from a registry with a digest", name),
				"ask for a package that, with all that it needs, does"}
		case module.Scripts:
			scripted = append(scripted, name)
		}
	}
	slices.Sort(scripted)
	return scripted, nil
}

// resolveModules runs npm to create a lock file for the requested packages. dir must be an empty
// directory.
func resolveModules(ctx context.Context, wanted []string, registry, dir string) ([]byte, error) {
	if err := writeManifest(dir, wanted); err != nil {
		return nil, err
	}
	if err := npm(ctx, dir, registry, "install", "--package-lock-only", "--lockfile-version", "3",
		"--omit-lockfile-registry-resolved"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return nil, fmt.Errorf("resolving npm packages: %w", err)
	}
	return withoutMissing(text)
}

// withoutMissing removes optional dependencies that are not in npm's lock file from the packages that ask for them, and
// returns the file without white space. Some packages name programs for systems for which none is published, and `npm
// ci` refuses a lock without them.
func withoutMissing(text []byte) ([]byte, error) {
	var lock map[string]any
	if err := strictjson.UnmarshalOpen(text, &lock); err != nil {
		return nil, fmt.Errorf("reading npm's lock: %w", err)
	}
	packages, _ := lock["packages"].(map[string]any)
	found := map[string]bool{}
	for place := range packages {
		_, name := cutLast(place, nodeModules+"/")
		found[name] = true
	}
	for _, entry := range packages {
		module, _ := entry.(map[string]any)
		optional, _ := module["optionalDependencies"].(map[string]any)
		maps.DeleteFunc(optional, func(name string, _ any) bool { return !found[name] })
	}
	return json.Marshal(lock)
}

func writeManifest(dir string, wanted []string) error {
	dependencies := map[string]string{}
	for _, requirement := range wanted {
		name, versions := nodeDependency(requirement)
		dependencies[name] = versions
	}
	text, err := json.Marshal(map[string]any{"name": "airlock-image", "version": "1.0.0", "private": true,
		"dependencies": dependencies})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "package.json"), text, 0o600)
}

// addModules runs npm to fetch and unpack the locked packages, without running their scripts, and
// moves them to tree.
func (b *builder) addModules(ctx context.Context, tree string) error {
	scratch, err := os.MkdirTemp(b.work, "modules-")
	if err != nil {
		return err
	}
	if err := writeManifest(scratch, b.wanted); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(scratch, "package-lock.json"), b.modules, 0o600); err != nil {
		return err
	}
	b.say.step("downloading and unpacking npm packages")
	if err := npm(ctx, scratch, b.registry, "ci", "--omit", "dev", "--os", "linux", "--cpu", npmCPUs[hostArch],
		"--libc", "glibc"); err != nil {
		return err
	}
	if err := cleanModules(filepath.Join(scratch, nodeModules)); err != nil {
		return err
	}
	return errors.Join(os.Rename(filepath.Join(scratch, nodeModules), filepath.Join(tree, nodeModules)),
		os.RemoveAll(scratch))
}

// cleanModules removes files outside of packages, and limits the rest. npm does not unpack
// links; a link is refused.
func cleanModules(dir string) error {
	var size int64
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".bin" && entry.IsDir():
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return fs.SkipDir
		case entry.Name() == ".package-lock.json" && filepath.Dir(path) == dir:
			return os.Remove(path)
		case entry.IsDir():
			return os.Chmod(path, 0o755)
		case !entry.Type().IsRegular():
			return fmt.Errorf("npm unpacked %.200q, which is neither directory nor regular file", path)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > maxPackages {
			return fmt.Errorf("the npm packages hold more than %d bytes", int64(maxPackages))
		}
		return nil
	})
}

// listModules are the packages of a lock that npm has unpacked: it leaves out those for
// other systems.
func listModules(text []byte, dir string) ([]Package, error) {
	var lock moduleLock
	if err := strictjson.UnmarshalOpen(text, &lock); err != nil {
		return nil, fmt.Errorf("reading npm's lock: %w", err)
	}
	var packages []Package
	for place, module := range lock.Packages {
		_, name := cutLast(place, nodeModules+"/")
		if place == "" || module.Bundled || !exists(filepath.Join(filepath.Dir(dir), place)) {
			continue
		}
		packages = append(packages, Package{Source: FromNPM, Name: name, Version: module.Version,
			Digest: module.Integrity})
	}
	sortPackages(packages)
	return packages, nil
}

// npm runs npm in a directory, without scripts of packages and without telemetry.
func npm(ctx context.Context, dir, registry string, args ...string) error {
	program, err := findTool("npm", "npm")
	if err != nil {
		return err
	}
	line := append(args, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error",
		"--cache", filepath.Join(dir, ".npm"))
	if registry != "" {
		line = append(line, "--registry", registry)
	}
	cmd := exec.CommandContext(ctx, program, line...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return npmFailure(err, said.String())
	}
	return nil
}

var npmMissing = lazyregexp.New(
	`(?m)(?:404 +'?([^\s']+?)'? is not in this registry|No matching version found for (\S+?)\.?\s*$|404 Not Found ` +
		`- GET \S*/(\S+))`)

func npmFailure(err error, said string) error {
	if found := npmMissing.FindStringSubmatch(said); found != nil {
		name := strings.Trim(found[1]+found[2], "'\"")
		if name == "" {
			name = found[3]
		}
		return &PackageError{fmt.Sprintf("the npm package %.200q was not found", name),
			"look at the name and the version"}
	}
	if strings.Contains(said, "EINTEGRITY") {
		return errors.New("an npm package does not have the digest in images.lock: a published file never changes, " +
			"so it is not used")
	}
	if len(said) > 2000 {
		said = said[len(said)-2000:]
	}
	return fmt.Errorf("npm could not fetch the packages: %w\n  %s", err, strings.TrimSpace(said))
}
