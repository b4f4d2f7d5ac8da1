// Package posture verifies the privileges and mounts that the processes of a started sandbox
// really have: it reads them from the host's /proc and compares them with what was asked for.
package posture

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KernelCaps is what gVisor's kernel keeps, in its own user namespace only: it
// traces its stubs (CAP_SYS_PTRACE, capabilities(7)).
const KernelCaps = 1 << unix.CAP_SYS_PTRACE

// Want is what a process of a sandbox must look like from the host. A zero
// field allows nothing.
type Want struct {
	Role     string            // name of the process, for errors
	Host     User              // the user it runs as
	Groups   bool              // may be in more groups: Airlock cannot drop them
	Caps     uint64            // the only capabilities allowed, in any set
	Ours     map[string]string // Airlock's namespaces, to differ from
	Group    string            // name of the control group, or ""
	Mounts   []string          // where file systems are mounted, sorted; nil: not looked at
	Writable []string          // the only regular files it may hold open for writing
}

// Check inspects one process and returns the first difference, or nil. If the process
// is gone, the error wraps os.ErrNotExist or unix.ESRCH.
func (want Want) Check(pid int) error {
	seen, err := observe(pid, true)
	if err != nil {
		return err
	}
	return want.check(seen)
}

// CheckStubs looks at the processes in which the code's instructions run: all
// descendants of gVisor's kernel. They must be as the kernel is, but for the
// mounts and files, which they share with it.
func (want Want) CheckStubs(kernel int) error {
	pids, err := Children(kernel)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return errors.New("gVisor's kernel has no child processes, in which the code should run")
	}
	want.Role, want.Mounts = "stub", nil
	for len(pids) > 0 {
		pid := pids[0]
		pids = pids[1:]
		seen, err := observe(pid, false)
		if Gone(err) {
			continue // ended meanwhile
		}
		if err != nil {
			return err
		}
		if err := want.check(seen); err != nil {
			return err
		}
		if more, err := Children(pid); err == nil {
			pids = append(pids, more...)
		}
	}
	return nil
}

// check returns the first difference, or nil.
func (want Want) check(seen observed) error {
	for _, step := range []func(observed) error{
		want.checkUser, want.checkPrivileges, want.checkNamespaces, want.checkGroup, want.checkMounts, want.checkFiles,
	} {
		if err := step(seen); err != nil {
			return fmt.Errorf("its %s (process %d) %w", want.Role, seen.pid, err)
		}
	}
	return nil
}

func (want Want) checkUser(seen observed) error {
	for _, ids := range []struct {
		kind string
		got  []string
		want uint32
	}{{"user", seen.uids, want.Host.UID}, {"group", seen.gids, want.Host.GID}} {
		id := strconv.FormatUint(uint64(ids.want), 10)
		if len(ids.got) != 4 || slices.ContainsFunc(ids.got, func(s string) bool { return s != id }) {
			return fmt.Errorf("runs as %s %v, want %s", ids.kind, ids.got, id)
		}
	}
	if seen.groups != "" && !want.Groups {
		return fmt.Errorf("has the groups %s", seen.groups)
	}
	return nil
}

func (want Want) checkPrivileges(seen observed) error {
	if len(seen.caps) != 5 {
		return errors.New("has unknown capabilities")
	}
	for set, caps := range seen.caps {
		if more := caps &^ want.Caps; more != 0 {
			return fmt.Errorf("has capabilities %#x too many in %s", more, set)
		}
	}
	if seen.noNewPrivs != "1" {
		return fmt.Errorf("may gain privileges: NoNewPrivs is %q", seen.noNewPrivs)
	}
	// 2 is SECCOMP_MODE_FILTER.
	if seen.seccomp != "2" {
		return fmt.Errorf("has no filter of system calls: Seccomp is %q", seen.seccomp)
	}
	return nil
}

func (want Want) checkNamespaces(seen observed) error {
	for _, kind := range separated {
		if seen.namespaces[kind] == "" || seen.namespaces[kind] == want.Ours[kind] {
			return fmt.Errorf("shares the host's %s namespace", kind)
		}
	}
	if seen.interfaces != nil && !slices.Equal(seen.interfaces, []string{"lo"}) {
		return fmt.Errorf("has network interfaces %v, want only lo", seen.interfaces)
	}
	return nil
}

func (want Want) checkGroup(seen observed) error {
	if want.Group != "" && !strings.Contains(seen.cgroups, "/"+want.Group+"\n") {
		return fmt.Errorf("is not in control group %q", want.Group)
	}
	return nil
}

func (want Want) checkMounts(seen observed) error {
	if want.Mounts == nil {
		return nil
	}
	var points []string
	for _, m := range seen.mounts {
		points = append(points, m.point)
		if !slices.Contains(strings.Split(m.options, ","), "ro") {
			return fmt.Errorf("can write to the file system at %q", m.point)
		}
	}
	slices.Sort(points)
	if !slices.Equal(points, want.Mounts) {
		return fmt.Errorf("has file systems at %v, want %v", points, want.Mounts)
	}
	return nil
}

// checkFiles allows pipes, sockets, memory and event descriptors, the null
// device, and files that are open for reading only. A directory that is open for
// reading gives access to mounted files only, and the mounts were checked.
func (want Want) checkFiles(seen observed) error {
	for _, f := range seen.files {
		switch {
		case strings.HasPrefix(f.target, "pipe:"), strings.HasPrefix(f.target, "socket:"),
			strings.HasPrefix(f.target, "anon_inode:"), strings.HasPrefix(f.target, "/memfd:"), f.target == "/dev/null":
		case f.flags&unix.O_PATH != 0, f.flags&unix.O_ACCMODE == unix.O_RDONLY:
		case slices.Contains(want.Writable, f.target):
		default:
			return fmt.Errorf("has %q open for writing", f.target)
		}
	}
	return nil
}
