package contained

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/runner"
)

// Trial runs one server with a record of what it opens and connects to, to propose its sandbox. Every name has an
// address; the policies and the checks of addresses apply. The server reads Files and all directories of its
// configuration, and changes what the configuration lets it change.
type Trial struct {
	Server string
	Files  []string // directories of the host, absolute and without symbolic links
	Home   string   // one of Files that is too much to propose, or empty
}

// Touched is a file or a directory that a server on trial opened.
type Touched struct {
	Path  string `json:"path"`
	Write bool   `json:"write"` // it changed it, or tried to
}

// The limits of a proposal.
const (
	maxFiles   = 10_000 // that are recorded
	maxFolders = 8      // mounts of one top-level directory, before their common parent is proposed
)

// onTrial reports whether a server is on trial.
func (s *Servers) onTrial(id string) bool { return s.opts.Trial != nil && s.opts.Trial.Server == id }

// mounts returns the mounts of the server, with the files of the trial. All of them are observed.
func (t *Trial) mounts(configured []runner.Mount, to *state) []runner.Mount {
	all := slices.Clone(configured)
	for _, directory := range t.Files {
		if !slices.ContainsFunc(all, func(m runner.Mount) bool { return m.Target == directory }) {
			all = append(all, runner.Mount{Source: directory, Target: directory, Live: true})
		}
	}
	for i := range all {
		all[i].Seen = to.touched
	}
	return all
}

// touched notes a file that the server opened.
func (t *state) touched(path string, write bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.files[path]; known || len(t.files) < maxFiles {
		t.files[path] = was || write
	}
}

// Learned returns the sandbox that a server needs, from what it did during a trial.
func (t *Trial) Learned(server config.Server, did State) Proposal {
	p := Proposal{Server: server.ID}
	p.Program, _ = server.Program() // the trial has started it
	for _, r := range did.Reached {
		host, err := egress.ParseHost(r.Host)
		switch {
		case err != nil:
		case r.Connections > 0:
			p.Network = append(p.Network, host)
		default:
			p.Left = append(p.Left, r.Host+": "+r.Reason)
		}
	}
	folders := map[string]bool{}
	for _, file := range did.Files {
		if project := p.Program.Project; project != "" && strings.HasPrefix(file.Path+"/", project+"/") {
			continue // mounted anyway
		}
		folder := filepath.Dir(file.Path)
		if slices.Contains(t.Files, file.Path) {
			folder = file.Path // it listed the directory
		}
		switch {
		case folder == t.Home && file.Path == folder:
			continue
		case folder == t.Home || !images.Mountable(folder):
			p.Left = append(p.Left, file.Path+": "+map[bool]string{true: "written", false: "read"}[file.Write]+
				"; a mount for it would be all of "+folder)
		default:
			folders[folder] = folders[folder] || file.Write
		}
	}
	for _, m := range merged(folders, t.Files) {
		p.mount(m)
	}
	return p
}

// merged returns mounts for folders: none is inside of another one, and many of one top-level directory become one.
func merged(folders map[string]bool, tops []string) []config.ServerMount {
	counts := map[string]int{}
	top := func(folder string) string { // the directory below a top that has the folder
		for _, t := range tops {
			if rest, inside := strings.CutPrefix(folder, t+"/"); inside {
				first, _, _ := strings.Cut(rest, "/")
				return t + "/" + first
			}
		}
		return folder
	}
	for folder := range folders {
		counts[top(folder)]++
	}
	writable := map[string]bool{}
	for folder, write := range folders {
		if counts[top(folder)] > maxFolders {
			folder = top(folder)
		}
		writable[folder] = writable[folder] || write
	}
	var list []config.ServerMount
	for folder, write := range writable {
		list = append(list, config.ServerMount{Path: folder, At: folder, Writable: write})
	}
	slices.SortFunc(list, func(a, b config.ServerMount) int { return cmp.Compare(a.Path, b.Path) })
	var outer []config.ServerMount
	for _, m := range list {
		if n := len(outer); n > 0 && strings.HasPrefix(m.Path, outer[n-1].Path+"/") {
			outer[n-1].Writable = outer[n-1].Writable || m.Writable
			continue
		}
		outer = append(outer, m)
	}
	return outer
}
