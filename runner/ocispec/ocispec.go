// Package ocispec turns a request for a sandbox into an OCI runtime
// configuration (OCI Runtime Specification 1.2). It is a pure function that
// starts from an empty configuration: only what is listed here is granted.
package ocispec

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/runner"
)

// UID and GID are the user of the code inside. No user on any host has these numbers
// by custom, and they are not those that the host side of the sandbox runs as.
const (
	UID = 65532
	GID = 65532
)

// Where things are inside the sandbox.
const (
	Workspace = "/workspace"
	Client    = "/workspace/client"
	SocketDir = "/run/airlock"

	// clientInImage is the directory of the client library in an image.
	clientInImage = "/opt/airlock/client"
)

// Identity is the user that the sandbox's own host processes (not the code inside) run
// as: root inside their user namespace is this user of the host.
type Identity struct {
	UID uint32
	GID uint32
}

// Build returns the configuration for one sandbox. It refuses a request that
// would weaken it: root as host identity, paths that are not absolute and
// clean, mounts over what keeps the sandbox together.
func Build(spec runner.Spec, host Identity) (*specs.Spec, error) {
	if err := check(spec, host); err != nil {
		return nil, fmt.Errorf("building the configuration of sandbox %q: %w", spec.ID, err)
	}
	return &specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Process:  process(spec),
		Root:     &specs.Root{Path: spec.Image.RootFS, Readonly: true},
		Mounts:   mounts(spec),
		Linux:    linux(spec.Limits, host),
	}, nil
}

func check(spec runner.Spec, host Identity) error {
	if host.UID == 0 || host.GID == 0 {
		return errors.New("its host processes would be root")
	}
	if len(spec.Image.Args) == 0 {
		return fmt.Errorf("the image %q has no program", spec.Image.Name)
	}
	if u := spec.User; u != (runner.User{}) && (u.UID == 0 || u.GID == 0) {
		return errors.New("the code inside would be root")
	}
	for _, m := range spec.Mounts {
		if m.Writable && !m.Live {
			return fmt.Errorf("mount target %q is writable and not live", m.Target)
		}
	}
	for _, dir := range []string{spec.Image.RootFS, socketSource(spec)} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return fmt.Errorf("path %q is not absolute and clean", dir)
		}
	}
	if err := spec.Limits.Check(); err != nil {
		return err
	}
	return checkMounts(spec.Mounts)
}

func checkMounts(mounts []runner.Mount) error {
	seen := map[string]bool{}
	for _, m := range mounts {
		switch {
		case !filepath.IsAbs(m.Source) || filepath.Clean(m.Source) != m.Source:
			return fmt.Errorf("mount source %q is not absolute and clean", m.Source)
		case m.Target == runner.TrustDir:
		case m.Live && images.Mountable(m.Target) && m.Target != Client:
		case !strings.HasPrefix(m.Target, Workspace+"/") || path.Clean(m.Target) != m.Target:
			return fmt.Errorf("mount target %q is not below %s", m.Target, Workspace)
		case seen[m.Target]:
			return fmt.Errorf("mount target %q appears twice", m.Target)
		}
		seen[m.Target] = true
	}
	return nil
}

// userOf returns the user of the code inside.
func userOf(spec runner.Spec) specs.User {
	if spec.User == (runner.User{}) {
		return specs.User{UID: UID, GID: GID}
	}
	return specs.User{UID: spec.User.UID, GID: spec.User.GID}
}

func process(spec runner.Spec) *specs.Process {
	return &specs.Process{
		User:            userOf(spec),
		Args:            spec.Image.Args,
		Env:             spec.Image.Env,
		Cwd:             Workspace,
		NoNewPrivileges: true,
		// Present and empty: absent could mean a runtime's default set.
		Capabilities: &specs.LinuxCapabilities{},
		Rlimits:      rlimits(spec.Limits),
	}
}

func rlimits(l runner.Limits) []specs.POSIXRlimit {
	fixed := func(kind string, n uint64) specs.POSIXRlimit {
		return specs.POSIXRlimit{Type: kind, Soft: n, Hard: n}
	}
	return []specs.POSIXRlimit{
		fixed("RLIMIT_CORE", 0),
		fixed("RLIMIT_FSIZE", uint64(l.Disk)),
		fixed("RLIMIT_MEMLOCK", 64<<10),
		fixed("RLIMIT_MSGQUEUE", 0),
		fixed("RLIMIT_NOFILE", l.OpenFiles),
		// gVisor counts tasks (processes and threads) of a user against it.
		fixed("RLIMIT_NPROC", uint64(l.PIDs)),
	}
}

func linux(l runner.Limits, host Identity) *specs.Linux {
	return &specs.Linux{
		Namespaces: []specs.LinuxNamespace{
			{Type: specs.PIDNamespace},
			{Type: specs.NetworkNamespace},
			{Type: specs.IPCNamespace},
			{Type: specs.UTSNamespace},
			{Type: specs.MountNamespace},
			{Type: specs.UserNamespace},
		},
		UIDMappings: []specs.LinuxIDMapping{{ContainerID: 0, HostID: host.UID, Size: 1}},
		GIDMappings: []specs.LinuxIDMapping{{ContainerID: 0, HostID: host.GID, Size: 1}},
		Resources:   resources(l),
		MaskedPaths: []string{
			"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
			"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap",
			"/sys/firmware",
		},
		ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
	}
}

func resources(l runner.Limits) *specs.LinuxResources {
	const period = 100_000 // microseconds: the kernel's default
	var (
		memory  = l.Memory
		quota   = int64(l.CPUs * period)
		window  = uint64(period)
		noSwap  = l.Memory // memory and swap together
		pids    = HostTasks(l)
		devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	)
	return &specs.LinuxResources{
		Devices: devices,
		Memory:  &specs.LinuxMemory{Limit: &memory, Swap: &noSwap},
		CPU:     &specs.LinuxCPU{Quota: &quota, Period: &window},
		Pids:    &specs.LinuxPids{Limit: &pids},
	}
}

// HostTasks returns the limit on host tasks for a sandbox. Tasks inside are not host
// tasks: gVisor's kernel has separate threads, and each process inside takes a few stub
// threads. RLIMIT_NPROC inside the sandbox is the exact limit; this one is the second
// line of defence.
func HostTasks(l runner.Limits) int64 {
	const (
		kernel     = 64 // threads of gVisor's kernel, its file server and the launcher
		perProcess = 4  // stub threads
	)
	return kernel + perProcess*int64(l.PIDs)
}
