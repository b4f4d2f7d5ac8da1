package images

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// Source is the origin of a package.
type Source string

// The sources. Their words are those of images.lock.
const (
	FromDebian Source = "deb"
	FromNPM    Source = "npm"
	FromPyPI   Source = "pypi"
)

// Package is one package that went into an image.
type Package struct {
	Source  Source `json:"source"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Digest is of the package's file: "sha256:" and hexadecimal digits for
	// Debian and PyPI, "sha512-" and base64 (Subresource Integrity) for npm.
	Digest string `json:"digest"`
}

// lockKey identifies an image and its architecture.
type lockKey struct {
	image, arch string
}

// lockFile is the content of images.lock: the packages of each image.
type lockFile map[lockKey][]Package

const lockHeader = `# What goes into the sandbox images: image, architecture, source, package, version, digest.
# Written by "airlock images build --update-lock FILE"; docs/images.md says when.
`

// maxLockSize bounds a lock file, in bytes.
const maxLockSize = 1 << 20

// lockFields are the fields of one line.
const lockFields = 6

func parseLock(text []byte) (lockFile, error) {
	if len(text) > maxLockSize {
		return nil, fmt.Errorf("images.lock has %d bytes, more than %d", len(text), maxLockSize)
	}
	lock := lockFile{}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, maxLockSize+1)
	for number := 1; scanner.Scan(); number++ {
		line := scanner.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != lockFields {
			return nil, fmt.Errorf("images.lock, line %d: got %d fields, want %d", number, len(fields), lockFields)
		}
		pkg := Package{Source: Source(fields[2]), Name: fields[3], Version: fields[4], Digest: fields[5]}
		if err := pkg.check(); err != nil {
			return nil, fmt.Errorf("images.lock, line %d: %w", number, err)
		}
		key := lockKey{image: fields[0], arch: fields[1]}
		if slices.ContainsFunc(lock[key], pkg.sameName) {
			return nil, fmt.Errorf("images.lock, line %d: package %q is there twice", number, pkg.Name)
		}
		lock[key] = append(lock[key], pkg)
	}
	return lock, scanner.Err()
}

func (p Package) sameName(other Package) bool {
	return p.Source == other.Source && p.Name == other.Name
}

func (p Package) check() error {
	prefix := map[Source]string{FromDebian: "sha256:", FromNPM: "sha512-", FromPyPI: "sha256:"}[p.Source]
	if prefix == "" {
		return fmt.Errorf("unknown source %q", p.Source)
	}
	if !strings.HasPrefix(p.Digest, prefix) {
		return fmt.Errorf("the digest of %q does not start with %q", p.Name, prefix)
	}
	if p.Source == FromPyPI {
		return p.checkWheel()
	}
	return nil
}

var (
	wheelName    = lazyregexp.New(`^[a-z0-9](-?[a-z0-9]+)*$`)
	wheelVersion = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.!+_-]*$`)
	wheelDigest  = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// checkWheel is check for a wheel whose fields will be written into pip's own formats.
func (p Package) checkWheel() error {
	if p.Source != FromPyPI || !wheelName.MatchString(p.Name) || !wheelVersion.MatchString(p.Version) ||
		!wheelDigest.MatchString(p.Digest) {
		return fmt.Errorf("%.100q %.100q %.100q does not name a wheel", p.Name, p.Version, p.Digest)
	}
	return nil
}

// format writes the lock so that equal locks are equal bytes.
func (l lockFile) format() []byte {
	var lines []string
	for key, packages := range l {
		for _, pkg := range packages {
			line := []string{key.image, key.arch, string(pkg.Source), pkg.Name, pkg.Version, pkg.Digest}
			lines = append(lines, strings.Join(line, " "))
		}
	}
	slices.Sort(lines)
	var out bytes.Buffer
	out.WriteString(lockHeader)
	for _, line := range lines {
		out.WriteString(line + "\n")
	}
	return out.Bytes()
}

func sortPackages(packages []Package) {
	slices.SortFunc(packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
}

// drift returns the differences of the used packages from the locked ones, one sentence each.
// It returns an error if a package with a locked name and version has another digest, because
// a published version never changes.
func drift(locked, got []Package) (differences []string, err error) {
	for _, pkg := range got {
		i := slices.IndexFunc(locked, pkg.sameName)
		switch {
		case i < 0:
			differences = append(differences, fmt.Sprintf("%s %s is not in images.lock", pkg.Name, pkg.Version))
		case locked[i].Version != pkg.Version:
			differences = append(differences, fmt.Sprintf(
				"%s is %s, images.lock says %s", pkg.Name, pkg.Version, locked[i].Version))
		case locked[i].Digest != pkg.Digest:
			return nil, fmt.Errorf("package %s %s has the digest %s, but images.lock says %s", pkg.Name, pkg.Version,
				pkg.Digest, locked[i].Digest)
		}
	}
	for _, pkg := range locked {
		if !slices.ContainsFunc(got, pkg.sameName) {
			differences = append(differences, fmt.Sprintf("%s of images.lock is missing", pkg.Name))
		}
	}
	return differences, nil
}

// lockedPackages are the packages that images.lock names for an image on this
// architecture.
func lockedPackages(image string) ([]Package, error) {
	text, err := embedded.ReadFile("images.lock")
	if err != nil {
		return nil, fmt.Errorf("reading images.lock: %w", err)
	}
	lock, err := parseLock(text)
	return lock[lockKey{image: image, arch: hostArch}], err
}
