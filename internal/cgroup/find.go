package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Find returns the tree below this process's own group, so that limits set on this process
// also apply to the groups created in it. In version 2 it may first move this process into
// a child group, because a group that contains processes cannot enable controllers for its
// children. The error wraps ErrUnavailable and is a sentence about what is missing.
func Find() (*Tree, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	found, err := locate(string(mounts), string(own))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if found.v2 != "" {
		return findV2(found.v2)
	}
	return findV1(found.v1)
}

// location contains the paths of the groups of this process in the file system.
type location struct {
	v1 map[Controller]string
	v2 string // set only where version 2 has the controllers
}

// locate finds this process's groups from the texts of /proc/self/mountinfo
// and /proc/self/cgroup (proc(5), cgroups(7)). Where a host runs both versions
// side by side, the version that has the memory controller counts.
func locate(mountinfo, selfCgroup string) (location, error) {
	own := map[string]string{} // controller, or "" for version 2 → path
	for line := range strings.Lines(selfCgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			own[name] = parts[2]
		}
	}
	found := location{v1: map[Controller]string{}}
	var unified string
	for line := range strings.Lines(mountinfo) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		switch m.kind {
		case "cgroup2":
			if dir, ok := m.dir(own[""]); ok && unified == "" {
				unified = dir
			}
		case "cgroup":
			for option := range strings.SplitSeq(m.options, ",") {
				c := Controller(option)
				if dir, ok := m.dir(own[option]); ok && known(c) && found.v1[c] == "" {
					found.v1[c] = dir
				}
			}
		}
	}
	switch {
	case found.v1[Memory] != "":
		return found, nil
	case unified != "":
		return location{v2: unified}, nil
	case len(found.v1) > 0:
		return found, nil
	}
	return location{}, errors.New("no control group file system is mounted")
}

func known(c Controller) bool {
	return c == Memory || c == CPU || c == PIDs || c == cpuacct
}

// mount is the part of a line of mountinfo that matters here.
type mount struct{ root, point, kind, options string }

func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 3 {
		return mount{}, false
	}
	return mount{root: unescape(left[3]), point: unescape(left[4]), kind: right[0], options: right[2]}, true
}

// unescape undoes the octal escapes of mountinfo: space, tab, newline, backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// dir translates a path from /proc/self/cgroup into the file system. A mount
// may show only a part of the hierarchy, as in a container.
func (m mount) dir(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	if path == m.root || m.root == "/" {
		rest := path
		if path == m.root {
			rest = "/"
		}
		return filepath.Join(m.point, rest), true
	}
	rest, ok := strings.CutPrefix(path, m.root+"/")
	if !ok {
		return "", false
	}
	return filepath.Join(m.point, rest), true
}

func findV1(dirs map[Controller]string) (*Tree, error) {
	t := &Tree{version: 1, dirs: map[Controller]string{}}
	for controller, dir := range dirs {
		if unix.Access(dir, unix.W_OK) == nil {
			t.dirs[controller] = dir
		}
	}
	if !t.Has(Memory) && !t.Has(CPU) && !t.Has(PIDs) {
		return nil, fmt.Errorf("%w: this user may not make control groups under %q", ErrUnavailable, dirs[Memory])
	}
	return t, nil
}

// host is the child group that this process moves into under version 2.
const host = "airlock-host"

func findV2(dir string) (*Tree, error) {
	// A restarted Airlock in a group that its predecessor had prepared.
	if filepath.Base(dir) == host {
		dir = filepath.Dir(dir)
	}
	if unix.Access(dir, unix.W_OK) != nil {
		return nil, fmt.Errorf("%w: the control group %q is not delegated to this user", ErrUnavailable, dir)
	}
	have := controllers(dir, "cgroup.controllers")
	if !have[Memory] && !have[PIDs] && !have[CPU] {
		return nil, fmt.Errorf("%w: the control group %q has none of the controllers memory, pids and cpu",
			ErrUnavailable, dir)
	}
	if err := enable(dir, have); err != nil {
		if err := vacate(dir); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := enable(dir, have); err != nil {
			return nil, fmt.Errorf("%w: enabling controllers in %q: %w", ErrUnavailable, dir, err)
		}
	}
	t := &Tree{version: 2, dirs: map[Controller]string{}}
	for controller := range have {
		t.dirs[controller] = dir
	}
	return t, nil
}

// vacate moves this process into a child group, so that its group can enable controllers
// for children. This only helps if the group has no other process.
func vacate(dir string) error {
	pids, err := members([]string{dir})
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("the control group %q has other processes in it, so it cannot bound sandboxes", dir)
	}
	child := filepath.Join(dir, host)
	if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(child, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

func enable(dir string, want map[Controller]bool) error {
	enabled := controllers(dir, "cgroup.subtree_control")
	var words []string
	for _, c := range Bounding() {
		if want[c] && !enabled[c] {
			words = append(words, "+"+string(c))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(strings.Join(words, " ")), 0)
}

func controllers(dir, file string) map[Controller]bool {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	set := map[Controller]bool{}
	for word := range strings.FieldsSeq(string(data)) {
		if c := Controller(word); known(c) && c != cpuacct {
			set[c] = true
		}
	}
	return set
}
