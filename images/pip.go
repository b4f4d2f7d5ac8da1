package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// pythonVersion is that of the interpreter in the Python image, as packages are
// chosen for it: Debian 12's, whose minor releases never change.
const pythonVersion = "3.11"

// glibc is the minor version of the C library 2.x in the images, the newest that a
// "manylinux" wheel may ask for (PEP 600).
const glibc = 36

// pipBootstrap starts pip for another machine. pip's options select the files for that
// machine, but pip evaluates environment markers (PEP 508) for the running interpreter, so the
// functions that they use are replaced.
const pipBootstrap = `import platform, runpy, sys
machine, version = sys.argv[1:3]
platform.machine = lambda: machine
platform.python_version = lambda: version + ".2"
platform.python_version_tuple = lambda: (*version.split("."), "2")
platform.python_implementation = lambda: "CPython"
sys.argv[:3] = ["pip"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`

// machines are the kernel's names of architectures, by Go's.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// pip is the package installer of that name, used to resolve and to download
// wheels for an image. It never builds a package and runs no code of one. Its own
// settings, such as an index or a proxy in PIP_INDEX_URL or pip.conf, hold.
type pip struct {
	arch  string // Go's name of the architecture
	index string // where packages come from; "" leaves that to pip's settings
}

// resolve returns the wheels that fulfil the requirements, in pip's format. Where
// those have hashes, they name every package; else what they depend on comes along. dir
// is an empty directory for its use.
func (p pip) resolve(ctx context.Context, requirements []byte, hashed bool, dir string) ([]Package, error) {
	wanted, report := filepath.Join(dir, "wanted.txt"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(wanted, requirements, 0o600); err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	args := []string{"install", "--dry-run", "--ignore-installed", "--target", filepath.Join(dir, "none"), "--report",
		report, "-r", wanted}
	if hashed {
		args = append(args, "--require-hashes", "--no-deps")
	}
	if err := p.run(ctx, dir, args...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	return parsePipReport(text)
}

// pipReport is the part that is read of pip's installation report, version 1.
type pipReport struct {
	Install []struct {
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
		Direct   bool `json:"is_direct"` // from an address that another package names
		Download struct {
			URL     string `json:"url"`
			Archive struct {
				Hashes map[string]string `json:"hashes"`
			} `json:"archive_info"`
		} `json:"download_info"`
	} `json:"install"`
}

func parsePipReport(text []byte) ([]Package, error) {
	var report pipReport
	if err := strictjson.UnmarshalOpen(text, &report); err != nil {
		return nil, fmt.Errorf("reading pip's report: %w", err)
	}
	packages := make([]Package, 0, len(report.Install))
	for _, item := range report.Install {
		pkg := Package{Source: FromPyPI, Name: normalName(item.Metadata.Name), Version: item.Metadata.Version,
			Digest: "sha256:" + item.Download.Archive.Hashes["sha256"]}
		if item.Direct {
			return nil, &PackageError{
				Problem: fmt.Sprintf(
					"the Python package %.100q is to come from an address outside of the index: %.200q", pkg.Name,
					item.Download.URL),
				Advice: "ask for a package that, with all that it needs, comes from the index",
			}
		}
		if !strings.HasSuffix(item.Download.URL, ".whl") {
			return nil, fmt.Errorf("pip chose %.200q for %q, which is not a wheel", item.Download.URL, pkg.Name)
		}
		if err := pkg.check(); err != nil {
			return nil, fmt.Errorf("reading pip's report: %w", err)
		}
		packages = append(packages, pkg)
	}
	sortPackages(packages)
	return packages, nil
}

var nameSeparators = lazyregexp.New(`[-_.]+`)

// normalName is the one spelling of a Python package's name (PEP 503, "Normalized Names").
func normalName(name string) string {
	return nameSeparators.ReplaceAllString(strings.ToLower(name), "-")
}

// download fetches exactly these wheels to dir and returns their paths, in order.
func (p pip) download(ctx context.Context, packages []Package, dir string) ([]string, error) {
	var list bytes.Buffer
	for _, pkg := range packages {
		fmt.Fprintf(&list, "%s==%s --hash=%s\n", pkg.Name, pkg.Version, pkg.Digest)
	}
	wanted := filepath.Join(dir, "wanted.txt")
	if err := os.WriteFile(wanted, list.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("downloading Python packages: %w", err)
	}
	if err := p.run(ctx, dir, "download", "--no-deps", "--require-hashes", "--dest", dir, "-r", wanted); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return nil, err
	}
	byDigest := map[string]string{}
	for _, file := range files {
		digest, err := fileDigest(file)
		if err != nil {
			return nil, err
		}
		byDigest[digest] = file
	}
	paths := make([]string, 0, len(packages))
	for _, pkg := range packages {
		path, ok := byDigest[pkg.Digest]
		if !ok {
			return nil, fmt.Errorf("pip downloaded no wheel of %s %s with the digest %s", pkg.Name, pkg.Version,
				pkg.Digest)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// run runs pip with the options that choose wheels for the image.
func (p pip) run(ctx context.Context, dir string, args ...string) error {
	program, err := findTool("python3", "python3-pip")
	if err != nil {
		return err
	}
	machine, ok := machines[p.arch]
	if !ok {
		return fmt.Errorf("there are no Python packages for the architecture %q", p.arch)
	}
	line := append([]string{"-c", pipBootstrap, machine, pythonVersion}, args...)
	line = append(line, "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--only-binary",
		":all:",
		"--implementation", "cp", "--python-version", pythonVersion, "--abi", "cp311", "--abi", "abi3", "--abi", "none")
	for _, platform := range platforms(machine) {
		line = append(line, "--platform", platform)
	}
	if p.index != "" {
		line = append(line, "--index-url", p.index)
	}
	cmd := exec.CommandContext(ctx, program, line...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return p.failure(err, said.String())
	}
	return nil
}

// platforms are the platform tags of wheels for a machine, best first (PEP 600; the
// older names of PEPs 513, 571 and 599).
func platforms(machine string) []string {
	var tags []string
	for minor := glibc; minor >= 5; minor-- {
		tags = append(tags, fmt.Sprintf("manylinux_2_%d_%s", minor, machine))
	}
	for _, older := range []string{"manylinux2014", "manylinux2010", "manylinux1", "linux"} {
		tags = append(tags, older+"_"+machine)
	}
	return tags
}

var (
	noWheel  = lazyregexp.New(`No matching distribution found for ([^\n]+)`)
	conflict = lazyregexp.New(
		`(?s)Cannot install ([^\n]+) because these package versions have conflicting dependencies`)
	otherHash = lazyregexp.New(`THESE PACKAGES DO NOT MATCH THE HASHES`)
)

// failure returns the reason of pip's failure in one sentence, if it is known.
func (p pip) failure(err error, said string) error {
	said = strings.TrimSpace(said)
	switch {
	case strings.Contains(said, "No module named pip"):
		return &MissingToolError{Tool: "pip", Package: "python3-pip"}
	case noWheel.MatchString(said):
		name := strings.TrimSpace(noWheel.FindStringSubmatch(said)[1])
		return &PackageError{
			Problem: fmt.Sprintf("no wheel of the Python package %.200q was found for CPython %s on %s", name,
				pythonVersion, p.arch),
			Advice: "look at the name and the version; a package that comes as source only cannot be used, because " +
				"Airlock runs no build scripts",
		}
	case conflict.MatchString(said):
		return &PackageError{
			Problem: fmt.Sprintf("no versions of the Python packages fit together: %.500s",
				conflict.FindStringSubmatch(said)[1]),
			Advice: "ask for other versions, or leave the versions out",
		}
	case otherHash.MatchString(said):
		return errors.New("a Python package does not have the digest in images.lock: a published file never changes, " +
			"so it is not used")
	}
	if len(said) > 2000 {
		said = said[len(said)-2000:]
	}
	return fmt.Errorf("pip could not fetch the Python packages: %w\n  %s", err, said)
}

// PackageError reports a package that cannot be installed, and what to do.
type PackageError struct {
	Problem string
	Advice  string
}

// Error returns the problem in one sentence.
func (e *PackageError) Error() string { return e.Problem }

// Hint returns what to write instead.
func (e *PackageError) Hint() string { return e.Advice }
