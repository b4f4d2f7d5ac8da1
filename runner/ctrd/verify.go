package ctrd

import (
	"os"

	"github.com/airlock-mcp/airlock/runner/posture"
)

// fileServerName is the first argument of the process that serves a sandbox's files.
const fileServerName = "runsc-gofer"

// Verify compares the sandbox's processes with what they must be.
func (p *process) Verify() error {
	ours, err := posture.NamespacesOf(os.Getpid())
	if err != nil {
		return err
	}
	want := posture.Want{
		Role: "kernel", Host: p.daemon.users.Outside(posture.User{UID: posture.Nobody, GID: posture.Nobody}),
		Caps: posture.KernelCaps, Ours: ours, Mounts: []string{"/"},
		Writable: []string{logFile(p.spec.StateDir), panicFile(p.spec.StateDir), userLogFile(p.spec.StateDir)},
	}
	if p.group != nil {
		want.Group = p.group.Name()
	}
	if err := want.Check(p.kernel.Pid); err != nil {
		return err
	}
	return want.CheckStubs(p.kernel.Pid)
}
