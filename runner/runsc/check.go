package runsc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Check looks whether this host lets this user make what sandboxes need.
func (d *Driver) Check(context.Context) error {
	if lack := d.host.Lack(); lack != nil && !d.opts.Unenforced {
		return lack
	}
	return d.checkNamespaces()
}

// checkNamespaces tests for what is missing most often, to report it in a clear sentence.
func (d *Driver) checkNamespaces() error {
	cmd := exec.Command(d.opts.Path, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("this host does not let this user (%d) make namespaces, which sandboxes need: %w",
			os.Geteuid(), err)
	}
	return nil
}
