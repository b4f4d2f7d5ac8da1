// Package startuphooks finds code that would run before a program starts: path
// configuration files (.pth) and similar files in Python's packages, preloaded libraries
// of a root file system, and environment variables with the same effect. Path
// configuration files are defined in the documentation of Python's module site.
package startuphooks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
)

// The words of Result.Status.
const (
	Clean       = "CLEAN_ENVIRONMENT"
	Compromised = "COMPROMISED"
)

// Result is what was found. Its JSON is that of the document's StartupHookGuard.
type Result struct {
	Verified bool   `json:"verified"`
	Status   string `json:"status"` // Clean or Compromised
	// Hooks are the paths of what would run and must not.
	Hooks []string `json:"suspicious_hooks"`
	// Findings describe problems in files, one sentence each.
	Findings []string `json:"content_findings"`
	Errors   []string `json:"scan_errors"` // directories that could not be listed
	Counts   Counts   `json:"counts"`      // of Hooks
	Message  string   `json:"message"`     // one sentence for people
	// Scanned are the directories that were looked through.
	Scanned []string `json:"scanned_directories"`
}

// Counts contains the number of hooks of each kind.
type Counts struct {
	Malicious    int `json:"malicious"`
	Unreadable   int `json:"unreadable"`
	Unauthorized int `json:"unauthorized"`
}

// allowed are the names of path configuration files that common tools install. Their
// content is still checked.
var allowed = []string{
	"_virtualenv.pth", "coverage.pth", "distutils-precedence.pth", "easy-install.pth", "hatchling.pth",
	"pip.pth", "pytest.pth", "setuptools.pth", "site-packages.pth", "virtualenv.pth",
}

// knownLines are lines with code that tools really install, each known to its last byte.
var knownLines = []string{
	"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and " +
		"__import__('_distutils_hack').add_shim();",
	"import _virtualenv",
}

// maxHook is how many bytes of a hook are read: an honest one has a few lines.
const maxHook = 64 << 10

// suspicious are signs of code that hides or carries off something.
var suspicious = []*lazyregexp.Regexp{
	lazyregexp.New(`(?i)\b(exec|eval|compile|__import__)\s*\(`),
	lazyregexp.New(`(?i)\b(base64|zlib|marshal|codecs|ctypes)\b`),
	lazyregexp.New(`(?i)\bimport\s+(socket|subprocess|urllib|requests|http|ssl|pty)\b`),
	lazyregexp.New(`(?i)\bos\s*\.\s*(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork)\s*\(`),
	lazyregexp.New(`\\x[0-9a-fA-F]{2}`),
	lazyregexp.New(`(?i)cryptowallet|\.aws/credentials|\.ssh/`),
}

// sitePackages are the directories in which Python looks for such files, below a root.
var sitePackages = []string{
	"usr/lib/python3*/site-packages", "usr/lib/python3*/dist-packages", "usr/local/lib/python3*/site-packages",
	"usr/local/lib/python3*/dist-packages", "opt/*/lib/python3*/site-packages",
	"root/.local/lib/python3*/site-packages",
	"home/*/.local/lib/python3*/site-packages",
}

// customizations are modules that Python imports before a program, from any of its directories.
var customizations = []string{"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize"}

// IsHook reports whether Python would use a file before a program runs. The path is
// relative to a directory of Python packages.
func IsHook(path string) bool {
	top, _, nested := strings.Cut(path, "/")
	return slices.Contains(customizations, top) || !nested && strings.HasSuffix(top, ".pth")
}

// preload are the files that list libraries for the loader to load first.
var preload = []string{"etc/ld.so.preload"}

// Root looks through a root file system, such as that of a sandbox's image.
func Root(root string) Result {
	var s scan
	for _, pattern := range sitePackages {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil { // only of the pattern
			s.result.Errors = append(s.result.Errors, err.Error())
		}
		for _, directory := range found {
			s.directory(directory)
			s.customized(filepath.Dir(directory))
		}
	}
	for _, name := range preload {
		s.preloaded(filepath.Join(root, name))
	}
	return s.end()
}

// All is what was found in several places together.
func All(results ...Result) Result {
	var s scan
	for _, r := range results {
		s.result.Hooks = append(s.result.Hooks, r.Hooks...)
		s.result.Findings = append(s.result.Findings, r.Findings...)
		s.result.Errors = append(s.result.Errors, r.Errors...)
		s.result.Scanned = append(s.result.Scanned, r.Scanned...)
		s.result.Counts.Malicious += r.Counts.Malicious
		s.result.Counts.Unreadable += r.Counts.Unreadable
		s.result.Counts.Unauthorized += r.Counts.Unauthorized
	}
	return s.end()
}

// scan is the looking through.
type scan struct{ result Result }

func (s *scan) directory(directory string) {
	if slices.Contains(s.result.Scanned, directory) {
		return
	}
	s.result.Scanned = append(s.result.Scanned, directory)
	entries, err := os.ReadDir(directory)
	if err != nil {
		s.result.Errors = append(s.result.Errors, fmt.Sprintf("Unable to list %s (%v)", directory, reason(err)))
		return
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".pth") {
			s.file(filepath.Join(directory, entry.Name()), slices.Contains(allowed, entry.Name()))
		}
	}
	s.customized(directory)
}

// customized looks for modules that are imported before any program.
func (s *scan) customized(directory string) {
	for _, name := range customizations {
		path := filepath.Join(directory, name)
		if _, err := os.Lstat(path); err == nil && !slices.Contains(s.result.Hooks, path) {
			s.result.Hooks = append(s.result.Hooks, path)
			s.result.Counts.Unauthorized++
		}
	}
}

// preloaded looks whether a file names libraries to be loaded first.
func (s *scan) preloaded(path string) {
	text, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.unreadable(path, err)
	case len(bytes.TrimSpace(text)) > 0:
		s.result.Hooks = append(s.result.Hooks, path)
		s.result.Counts.Unauthorized++
	}
}

func (s *scan) unreadable(path string, err error) {
	s.result.Hooks = append(s.result.Hooks, path)
	s.result.Findings = append(s.result.Findings, fmt.Sprintf("Unable to read %s (%v)", path, reason(err)))
	s.result.Counts.Unreadable++
}

// file judges one path configuration file.
func (s *scan) file(path string, isAllowed bool) {
	text, err := read(path)
	if err != nil {
		s.unreadable(path, err)
		return
	}
	findings := check(path, string(text))
	s.result.Findings = append(s.result.Findings, findings...)
	switch {
	case len(findings) > 0:
		s.result.Counts.Malicious++
	case !isAllowed:
		s.result.Counts.Unauthorized++
	default:
		return
	}
	s.result.Hooks = append(s.result.Hooks, path)
}

var errNoFile = errors.New("it is not a regular file")

// read returns what is in a regular file. A symbolic link in a root file system could
// lead out of it.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	if info.Size() > maxHook {
		return nil, fmt.Errorf("it has %d bytes, which is too large for such a file", info.Size())
	}
	f, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxHook))
}

// check returns the problems in a path configuration file: lines that begin with import are
// executed, and every other line is a directory to import from.
func check(path, text string) []string {
	var findings []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF"))
		switch {
		case line == "" || strings.HasPrefix(line, "#") || slices.Contains(knownLines, line):
		case matches(line):
			findings = append(findings, fmt.Sprintf("Suspicious pattern in line %d of %s", number, path))
		case !strings.HasPrefix(line, "import ") && !strings.HasPrefix(line, "import\t") && leadsAstray(line):
			findings = append(findings, fmt.Sprintf("Suspicious path entry in line %d of %s", number, path))
		}
	}
	return findings
}

func matches(line string) bool {
	return slices.ContainsFunc(suspicious, func(sign *lazyregexp.Regexp) bool { return sign.MatchString(line) })
}

// leadsAstray reports whether an import directory is writable by others, or is outside of
// the file's directory.
func leadsAstray(line string) bool {
	for _, prefix := range []string{"/tmp", "/var/tmp", "/dev/shm", "/proc", "/home", "~", "http:", "https:", "//"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return slices.Contains(strings.Split(filepath.ToSlash(line), "/"), "..")
}

// reason returns an error's cause without the path, which the message already has.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// end sums up.
func (s *scan) end() Result {
	r := &s.result
	for _, list := range []*[]string{&r.Hooks, &r.Findings, &r.Errors, &r.Scanned} {
		if *list == nil {
			*list = []string{}
		}
	}
	if len(r.Hooks) == 0 && len(r.Errors) == 0 {
		r.Verified, r.Status, r.Message = true, Clean, "No unauthorized startup hooks detected."
		return *r
	}
	r.Status = Compromised
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{r.Counts.Malicious, "with malicious patterns"}, {r.Counts.Unreadable, "unreadable (possible tampering)"},
		{r.Counts.Unauthorized, "unauthorized (not on the allowlist)"},
		{len(r.Errors), "directories that could not be listed"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	r.Message = fmt.Sprintf("CRITICAL: Detected %d suspicious startup hooks: %s. Execution blocked.", len(r.Hooks),
		strings.Join(parts, "; "))
	return *r
}

// variables are environment variables that run code or load libraries before a program
// starts. Variables that only set search paths are omitted, because they are often set for
// good reasons.
var variables = []string{
	"BASH_ENV", "GCONV_PATH", "JAVA_TOOL_OPTIONS", "LD_AUDIT", "LD_PRELOAD", "NODE_OPTIONS", "PERL5OPT", "PYTHONHOME",
	"PYTHONINSPECT",
	"PYTHONSTARTUP", "RUBYOPT",
}

// Variables returns the names of those variables of an environment, in order, that
// have something run or loaded before a program. One that is empty does nothing.
func Variables(environ []string) []string {
	found := map[string]bool{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.Contains(variables, name) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
