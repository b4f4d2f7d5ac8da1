package posture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// observed is the state of one process, read from the host's /proc (proc(5)).
type observed struct {
	pid        int
	uids       []string
	gids       []string
	groups     string
	caps       map[string]uint64 // CapInh, CapPrm, CapEff, CapBnd, CapAmb
	noNewPrivs string
	seccomp    string
	namespaces map[string]string
	mounts     []mountSeen
	files      []fileSeen
	cgroups    string
	interfaces []string
}

type mountSeen struct{ point, options, kind string }

type fileSeen struct {
	target string // the target of the descriptor's link
	flags  int    // open(2) flags
}

// namespaces that a sandbox must not share with Airlock. The cgroup namespace
// is not among them: gVisor does not show host control groups inside.
var separated = []string{"ipc", "mnt", "net", "pid", "user", "uts"}

func proc(pid int, file string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), file)
}

// observe reads everything about a process. deep adds mounts, files and
// network interfaces, which the stub processes share with gVisor's kernel.
func observe(pid int, deep bool) (observed, error) {
	o := observed{pid: pid, caps: map[string]uint64{}}
	status, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return o, err
	}
	o.readStatus(string(status))
	if o.namespaces, err = NamespacesOf(pid); err != nil {
		return o, err
	}
	groups, err := os.ReadFile(proc(pid, "cgroup"))
	if err != nil {
		return o, err
	}
	o.cgroups = string(groups)
	if !deep {
		return o, nil
	}
	mounts, err := os.ReadFile(proc(pid, "mountinfo"))
	if err != nil {
		return o, err
	}
	o.mounts = parseMounts(string(mounts))
	dev, err := os.ReadFile(proc(pid, "net/dev"))
	if err != nil {
		return o, err
	}
	o.interfaces = parseInterfaces(string(dev))
	o.files, err = filesOf(pid)
	return o, err
}

func (o *observed) readStatus(text string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Uid":
			o.uids = strings.Fields(value)
		case "Gid":
			o.gids = strings.Fields(value)
		case "Groups":
			o.groups = value
		case "NoNewPrivs":
			o.noNewPrivs = value
		case "Seccomp":
			o.seccomp = value
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			if n, err := strconv.ParseUint(value, 16, 64); err == nil {
				o.caps[key] = n
			}
		}
	}
}

// NamespacesOf reads the namespaces of a process that a sandbox must not share.
func NamespacesOf(pid int) (map[string]string, error) {
	all := map[string]string{}
	for _, kind := range separated {
		link, err := os.Readlink(proc(pid, "ns/"+kind))
		if err != nil {
			return nil, err
		}
		all[kind] = link
	}
	return all, nil
}

func parseMounts(text string) []mountSeen {
	var all []mountSeen
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 6 || len(right) < 1 {
			continue
		}
		all = append(all, mountSeen{point: left[4], options: left[5], kind: right[0]})
	}
	return all
}

func parseInterfaces(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			all = append(all, strings.TrimSpace(name))
		}
	}
	return all
}

func filesOf(pid int) ([]fileSeen, error) {
	entries, err := os.ReadDir(proc(pid, "fd"))
	if err != nil {
		return nil, err
	}
	var all []fileSeen
	for _, entry := range entries {
		target, err := os.Readlink(proc(pid, "fd/"+entry.Name()))
		if os.IsNotExist(err) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, err
		}
		f := fileSeen{target: target}
		if strings.HasPrefix(target, "/") {
			if f.flags, err = openFlags(pid, entry.Name()); os.IsNotExist(err) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, nil
}

func openFlags(pid int, fd string) (int, error) {
	info, err := os.ReadFile(proc(pid, "fdinfo/"+fd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if value, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(value), 8, 64)
			return int(flags), err
		}
	}
	return 0, fmt.Errorf("descriptor %s of process %d has no flags", fd, pid)
}

// Parent is the process that a process belongs to.
func Parent(pid int) (int, error) {
	status, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "PPid:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("process %d has no parent", pid)
}

// HasName reports whether the first argument of a process, the name under which it was started, is name.
func HasName(pid int, name string) bool {
	line, err := os.ReadFile(proc(pid, "cmdline"))
	first, _, _ := strings.Cut(string(line), "\x00")
	return err == nil && first == name
}

// Gone reports whether err means that a process has ended.
func Gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// Children lists the processes that pid has forked, from any of its threads.
func Children(pid int) ([]int, error) {
	tasks, err := os.ReadDir(proc(pid, "task"))
	if err != nil {
		return nil, err
	}
	var all []int
	for _, task := range tasks {
		list, err := os.ReadFile(proc(pid, "task/"+task.Name()+"/children"))
		if err != nil {
			return nil, err
		}
		for word := range strings.FieldsSeq(string(list)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			all = append(all, child)
		}
	}
	return all, nil
}
