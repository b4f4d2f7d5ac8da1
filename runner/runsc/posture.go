package runsc

import (
	"os"

	"github.com/airlock-mcp/airlock/runner/posture"
)

// kernelName is the first argument of gVisor's kernel.
const kernelName = "runsc-sandbox"

// Verify compares the sandbox's processes with what they must be.
func (p *process) Verify() error {
	ours, err := posture.NamespacesOf(os.Getpid())
	if err != nil {
		return err
	}
	want := posture.Want{
		Role: "kernel", Host: p.host, Groups: !dropsGroups(), Caps: posture.KernelCaps, Ours: ours,
		Mounts:   []string{"/"},
		Writable: []string{logFile(p.spec.StateDir), panicFile(p.spec.StateDir)},
	}
	if p.Group != nil {
		want.Group = p.Group.Name()
	}
	if err := want.Check(p.Process.Pid); err != nil {
		return err
	}
	return want.CheckStubs(p.Process.Pid)
}
