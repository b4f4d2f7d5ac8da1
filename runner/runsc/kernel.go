package runsc

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	live    []*os.File // the live mounts, in the order of the configuration
	broker  *os.File   // the broker's file system
	stdio   [3]*os.File
	control *os.File // the control socket it listens on
	started *os.File // it writes a byte here when it listens
	log     *os.File
	panics  *os.File
	session *os.File // configuration of what it reports
	reports *os.File // it writes trace events here
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

// command returns `runsc boot`: gVisor's kernel, started without its usual launcher. This
// is an internal interface of one gVisor version, so New requires that version.
func (d *Driver) command(sandbox *process, p parts) *exec.Cmd {
	spec := sandbox.spec
	var global, own flagged
	global.add("log-fd", p.log)
	global.add("panic-log-fd", p.panics)
	own.files = global.files
	for _, image := range p.images {
		own.add("io-fds", image)
	}
	for _, served := range append(p.live, p.broker) {
		own.add("io-fds", served)
	}
	own.add("spec-fd", p.spec)
	for _, file := range p.stdio {
		own.add("stdio-fds", file)
	}
	own.add("controller-fd", p.control)
	own.add("start-sync-fd", p.started)
	own.add("pod-init-config-fd", p.session)
	own.add("sink-fds", p.reports)

	args := append(flags(spec), global.args...)
	args = append(args, "boot", "--setup-root", "--apply-caps", "--attached",
		"--bundle="+spec.StateDir, "--gofer-mount-confs="+mountKinds(len(p.images), len(p.live)),
		"--product-name=sandbox")
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

// mountKinds returns the kind of each descriptor of a file system, as runsc expects it.
func mountKinds(images, live int) string {
	return strings.Repeat("erofs:none,", images) + strings.Repeat("lisafs:none,", live) + "lisafs:none"
}

// flags are runsc's global flags.
func flags(spec runner.Spec) []string {
	all := append([]string{rootFlag(spec.StateDir), "--log-format=json"}, arguments(gvisor.Flags())...)
	if slices.ContainsFunc(spec.Mounts, func(m runner.Mount) bool { return m.Live }) {
		all = append(all, "--file-access-mounts=shared") // others change the directories, too
	}
	return all
}

// rootFlag is how Sweep recognises the processes of a dead sandbox.
func rootFlag(state string) string { return "--root=" + state }

// environment returns the environment of the kernel process, not of the code. With the
// default GOGC the garbage collector would run several times before the code starts, for a
// heap of a few megabytes, which takes a seventh of the start's CPU time. GOMEMLIMIT makes
// it run more often if the heap approaches a quarter of the sandbox's memory. GOMAXPROCS=1
// applies until the kernel knows its number of CPUs (Resources): each further thread costs
// its start and one system call per dropped capability.
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

// isolation starts the kernel process in new namespaces, as a dedicated user.
func isolation(host posture.User) *syscall.SysProcAttr {
	drop := dropsGroups()
	return &syscall.SysProcAttr{
		Setsid: true,
		// When Airlock dies, the sandbox dies.
		Pdeathsig: unix.SIGKILL,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: posture.Nobody, HostID: int(host.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: posture.Nobody, HostID: int(host.GID), Size: 1}},
		Credential:  &syscall.Credential{Uid: posture.Nobody, Gid: posture.Nobody, NoSetGroups: !drop},
		AmbientCaps: bootCaps[:],
		// Without it, Go does not drop Airlock's supplementary groups. Root's logins and Pods have the group 0.
		GidMappingsEnableSetgroups: drop,
	}
}

// dropsGroups reports whether this process may drop its supplementary groups in a new user namespace: root may, unless
// its own user namespace forbids that (user_namespaces(7), "/proc/pid/setgroups").
var dropsGroups = sync.OnceValue(func() bool {
	allowed, err := os.ReadFile("/proc/self/setgroups")
	return os.Geteuid() == 0 && err == nil && strings.TrimSpace(string(allowed)) == "allow"
})
