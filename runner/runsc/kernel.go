package runsc

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/posture"
)

// bootCaps are what the kernel process needs to make its empty root, in its own
// user namespace. It gives them up before it loads anything of the sandbox.
var bootCaps = [...]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE}

// parts are the descriptors that gVisor's kernel is given: all it will ever
// have of the host.
type parts struct {
	spec    *os.File   // the configuration
	images  []*os.File // the root and the mounted directories, in the order of the configuration
	broker  *os.File   // the broker's file system
	stdio   [3]*os.File
	control *os.File // where it listens for its caller
	started *os.File // where it says that it listens
	log     *os.File
	panics  *os.File
	session *os.File // configuration of what it reports
	reports *os.File // where it reports
}

// flagged collects descriptors for a child and the flags that name them.
type flagged struct {
	files []*os.File
	args  []string
}

// firstFD is the number of the first descriptor after the standard ones.
const firstFD = 3

func (f *flagged) add(flag string, file *os.File) {
	f.args = append(f.args, fmt.Sprintf("--%s=%d", flag, firstFD+len(f.files)))
	f.files = append(f.files, file)
}

// command is `runsc boot`: gVisor's kernel, started without the launcher that
// usually stands before it. That is a command between parts of one version of
// gVisor, which is why New insists on the version.
func (d *Driver) command(sandbox *process, p parts) *exec.Cmd {
	spec := sandbox.spec
	var global, own flagged
	global.add("log-fd", p.log)
	global.add("panic-log-fd", p.panics)
	own.files = global.files
	for _, image := range p.images {
		own.add("io-fds", image)
	}
	own.add("io-fds", p.broker)
	own.add("spec-fd", p.spec)
	for _, file := range p.stdio {
		own.add("stdio-fds", file)
	}
	own.add("controller-fd", p.control)
	own.add("start-sync-fd", p.started)
	own.add("pod-init-config-fd", p.session)
	own.add("sink-fds", p.reports)

	args := append(flags(spec.StateDir), global.args...)
	args = append(args, "boot", "--setup-root", "--apply-caps", "--attached",
		"--bundle="+spec.StateDir, "--gofer-mount-confs="+mountKinds(len(p.images)), "--product-name=sandbox")
	args = append(args, arguments(gvisor.Resources(spec.Limits))...)
	args = append(args, own.args...)
	cmd := exec.Command(d.opts.Path, append(args, spec.ID)...)
	cmd.Args[0] = kernelName
	cmd.ExtraFiles = own.files
	cmd.Env = environment(spec.Limits)
	cmd.Dir = "/"
	cmd.SysProcAttr = isolation(sandbox.host)
	return cmd
}

// mountKinds says what stands behind each descriptor of a file system.
func mountKinds(images int) string {
	return strings.Repeat("erofs:none,", images) + "lisafs:none"
}

// flags are runsc's global flags.
func flags(state string) []string {
	return append([]string{rootFlag(state), "--log-format=json"}, arguments(gvisor.Flags())...)
}

// rootFlag is how Sweep recognises the processes of a dead sandbox.
func rootFlag(state string) string { return "--root=" + state }

// environment is that of the kernel process, not of the code. Its collector of
// garbage would otherwise run several times before the code does, for a heap of
// a few megabytes: a seventh of all that a start costs. It runs again, and
// harder, where the heap would take a quarter of the sandbox's memory. What the
// kernel does before it knows its number of processors (Resources), it does in
// turn: a thread more has to be started, and told of each capability that is dropped.
func environment(l runner.Limits) []string {
	return []string{"GOGC=400", "GOMAXPROCS=1", "GOMEMLIMIT=" + strconv.FormatInt(l.Memory/4, 10)}
}

func arguments(flags []gvisor.Flag) []string {
	args := make([]string, len(flags))
	for i, flag := range flags {
		args[i] = flag.String()
	}
	return args
}

// isolation puts the kernel process into namespaces of its own from its first
// instruction, as a user of its own.
func isolation(host posture.User) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid: true,
		// When Airlock dies, the sandbox dies.
		Pdeathsig: unix.SIGKILL,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: posture.Nobody, HostID: int(host.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: posture.Nobody, HostID: int(host.GID), Size: 1}},
		Credential:  &syscall.Credential{Uid: posture.Nobody, Gid: posture.Nobody, NoSetGroups: os.Geteuid() != 0},
		AmbientCaps: bootCaps[:],
	}
}
