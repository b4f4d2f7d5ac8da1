package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// entry is one file of a release.
type entry struct {
	archive string // its path in the archive; empty: not there
	system  string // its absolute path on a system that the package is installed on; empty: not there
	link    string // target of a symbolic link; empty for a file
	mode    os.FileMode
	content []byte
	packed  []byte // content as gzip, where system ends in .gz
}

// installed returns the content on a system that the package is installed on.
func (e entry) installed() []byte {
	if e.packed != nil {
		return e.packed
	}
	return e.content
}

// private is the directory of programs that users do not call by name. It contains runsc
// beside airlock, which looks for it there; a runsc of the distribution is not affected.
const private = "/usr/lib/airlock"

// content collects the files of a release.
func (r *release) content(programs string) ([]entry, error) {
	var entries []entry
	found, err := os.ReadDir(programs)
	if err != nil {
		return nil, err
	}
	for _, program := range found {
		b, err := os.ReadFile(filepath.Join(programs, program.Name()))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{archive: program.Name(), system: path.Join(private, program.Name()),
			mode: 0o755, content: b})
		entries = append(entries, links(program.Name())...)
	}
	licences, err := r.licences(programs)
	if err != nil {
		return nil, err
	}
	entries = append(entries, entry{archive: "THIRD-PARTY-LICENSES",
		system: "/usr/share/doc/airlock/THIRD-PARTY-LICENSES.gz", mode: 0o644, content: licences})
	for _, add := range []func() ([]entry, error){r.generated, r.documents} {
		more, err := add()
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, compress(entries)
}

// names are the names under which users and hosts call a program, which selects its function.
var names = map[string][]string{"airlock": {"airlock", "mcp-kernel-server", "qwed-mcp"}}

// links are the names of a program in /usr/bin.
func links(program string) (entries []entry) {
	for _, name := range names[program] {
		entries = append(entries, entry{system: "/usr/bin/" + name,
			link: path.Join("..", strings.TrimPrefix(private, "/usr/"), program)})
	}
	return entries
}

// generated are the files that the program makes about itself.
func (r *release) generated() ([]entry, error) {
	entries := []entry{
		{archive: "man/airlock.1", system: "/usr/share/man/man1/airlock.1.gz"},
		{archive: "completions/airlock.bash", system: "/usr/share/bash-completion/completions/airlock"},
		{archive: "completions/_airlock", system: "/usr/share/zsh/vendor-completions/_airlock"},
		{archive: "completions/airlock.fish", system: "/usr/share/fish/vendor_completions.d/airlock.fish"},
	}
	for i, arguments := range [][]string{{"man"}, {"completion", "bash"}, {"completion", "zsh"},
		{"completion", "fish"}} {
		text, err := exec.Command(r.host, arguments...).Output()
		if err != nil {
			return nil, fmt.Errorf("running %s %s: %w", r.host, strings.Join(arguments, " "), err)
		}
		entries[i].mode, entries[i].content = 0o644, text
	}
	return entries, nil
}

// documents are files of the checkout.
func (r *release) documents() ([]entry, error) {
	entries := []entry{{archive: "CHANGES", system: "/usr/share/doc/airlock/changelog.gz", mode: 0o644}}
	var err error
	if entries[0].content, err = r.changes(); err != nil {
		return nil, err
	}
	for _, file := range []struct{ from, archive, system string }{
		{"LICENSE", "LICENSE", ""},
		{"README.md", "README.md", "/usr/share/doc/airlock/README.md"},
		{"SECURITY.md", "SECURITY.md", "/usr/share/doc/airlock/SECURITY.md"},
		{"packaging/debian/copyright", "", "/usr/share/doc/airlock/copyright"},
	} {
		e := entry{archive: file.archive, system: file.system, mode: 0o644}
		if e.content, err = os.ReadFile(filepath.Join(r.root, file.from)); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	for _, tree := range []struct{ from, archive, system string }{
		{"docs/*.md", "docs", "/usr/share/doc/airlock/docs"},
		{"docs/*.schema.json", "docs", "/usr/share/doc/airlock/docs"},
		{"docs/design/*.md", "docs/design", "/usr/share/doc/airlock/docs/design"},
		{"docs/hosts/*.md", "docs/hosts", "/usr/share/doc/airlock/docs/hosts"},
		{"docs/pictures/*", "docs/pictures", "/usr/share/doc/airlock/docs/pictures"},
		{"policies/*.cedar", "policies", "/usr/share/doc/airlock/policies"},
		{"policies/examples/*.cedar", "policies/examples", "/usr/share/doc/airlock/policies/examples"},
		{"packaging/prometheus/*", "packaging/prometheus", "/usr/share/doc/airlock/packaging/prometheus"},
		{"packaging/grafana/*", "packaging/grafana", "/usr/share/doc/airlock/packaging/grafana"},
		{"packaging/airlock.yaml", "etc", "/etc/airlock"},
	} {
		found, err := filepath.Glob(filepath.Join(r.root, tree.from))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("the release lacks %s", tree.from)
		}
		for _, file := range found {
			name := filepath.Base(file)
			e := entry{archive: path.Join(tree.archive, name), system: path.Join(tree.system, name), mode: 0o644}
			if e.content, err = os.ReadFile(file); err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	units, err := filepath.Glob(filepath.Join(r.root, "packaging/systemd/airlock.*"))
	if err != nil {
		return nil, err
	}
	for _, unit := range units {
		e := entry{archive: "systemd/" + filepath.Base(unit), system: "/usr/lib/systemd/system/" + filepath.Base(unit),
			mode: 0o644}
		if e.content, err = os.ReadFile(unit); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	replaceLinks(entries)
	return entries, nil
}

// sources is the address of the files of the checkout.
const sources = "https://github.com/airlock-mcp/airlock/blob/main/"

// relative matches the target of a Markdown link that is not a URL, and its anchor.
var relative = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)

// replaceLinks replaces the links of documents to files that are not installed by links to the sources.
// The other links stay, because the installed files are in the directories of the checkout.
func replaceLinks(entries []entry) {
	installed := map[string]bool{}
	for _, e := range entries {
		if e.archive == "" || e.system == "" {
			continue
		}
		for file := e.archive; file != "."; file = path.Dir(file) {
			installed[file] = true
		}
	}
	for i, e := range entries {
		if path.Ext(e.archive) != ".md" {
			continue
		}
		entries[i].content = relative.ReplaceAllFunc(e.content, func(link []byte) []byte {
			parts := relative.FindSubmatch(link)
			target := path.Join(path.Dir(e.archive), string(parts[1]))
			if installed[target] {
				return link
			}
			return fmt.Appendf(nil, "](%s%s%s)", sources, target, parts[2])
		})
	}
}

// changes joins the files of visible changes, the newest first.
func (r *release) changes() ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(r.root, "changelog/*.txt"))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for i := len(files) - 1; i >= 0; i-- { // Glob sorts
		b, err := os.ReadFile(files[i])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "* %s\n", strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "\n  "))
	}
	return text.Bytes(), nil
}

// compress packs those whose path on a system ends in .gz; they are in the archive
// as they are.
func compress(entries []entry) error {
	for i, e := range entries {
		if !strings.HasSuffix(e.system, ".gz") {
			continue
		}
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(e.content); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		entries[i].packed = b.Bytes()
	}
	return nil
}
