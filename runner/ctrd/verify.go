package ctrd

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner/posture"
)

// fileServerName is the first argument of the process that serves a sandbox's files.
const fileServerName = "runsc-gofer"

// fileServerCaps is what that process keeps, in its own user namespace, which has
// one user: nothing of it counts outside (gVisor, runsc/cmd/gofer.go).
const fileServerCaps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// Verify compares the sandbox's processes with what they must be: gVisor's kernel
// and its stubs, which have no file of the host, and the server of its files, which
// has the image, the wrappers and the broker's socket, and none to write to.
func (p *process) Verify() error {
	ours, err := posture.NamespacesOf(os.Getpid())
	if err != nil {
		return err
	}
	state := p.spec.StateDir
	kernel := posture.Want{
		Role: "kernel", Host: p.daemon.users.Outside(posture.User{UID: posture.Nobody, GID: posture.Nobody}),
		Caps: posture.KernelCaps, Ours: ours, Mounts: []string{"/"},
		Writable: []string{logFile(state), panicFile(state)},
	}
	if p.Group != nil {
		kernel.Group = p.Group.Name()
	}
	files := kernel
	files.Role, files.Host, files.Caps, files.Mounts = "file server", p.user, fileServerCaps, p.served()
	if err := kernel.Check(p.Process.Pid); err != nil {
		return err
	}
	if err := kernel.CheckStubs(p.Process.Pid); err != nil {
		return err
	}
	return files.Check(p.files)
}

// served is where file systems are mounted for the server of the sandbox's files.
func (p *process) served() []string {
	points := []string{"/"}
	for _, m := range p.config.Mounts {
		if m.Type == "bind" {
			points = append(points, m.Destination)
		}
	}
	slices.Sort(points)
	return points
}
