package ocispec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/runner"
)

// The writable places share Limits.Disk in sixteenths: a file system of its
// own each, because gVisor bounds each one exactly.
const (
	workspaceShare = 12
	tmpShare       = 3
	shmShare       = 1
	shares         = workspaceShare + tmpShare + shmShare
)

// socketSource returns the source of the mount with the broker's socket. Drivers that serve the mount themselves
// replace it.
func socketSource(spec runner.Spec) string { return cmp.Or(spec.SocketDir(), SocketDir) }

// mounts lists every mount except the root, which is the read-only image.
func mounts(spec runner.Spec) []specs.Mount {
	disk, user := spec.Limits.Disk, userOf(spec)
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		// gVisor ignores the source and provides its own /dev: null, zero, full,
		// random, urandom, tty, ptmx and the links to them.
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs",
			Options: []string{"nosuid", "noexec", "mode=0755", "size=65536"}},
		// gVisor puts a tunnel device there, which was not asked for.
		{Destination: "/dev/net", Type: "tmpfs", Source: "tmpfs",
			Options: []string{"nosuid", "noexec", "nodev", "ro", "mode=0555", "size=4096"}},
		tmpfs("/dev/shm", disk*shmShare/shares, "01777", "noexec"),
		tmpfs("/tmp", disk*tmpShare/shares, "01777"),
		tmpfs(Workspace, disk*workspaceShare/shares, "0755", fmt.Sprintf("uid=%d", user.UID),
			fmt.Sprintf("gid=%d", user.GID)),
		bind(socketSource(spec), SocketDir),
	}
	if !spec.Image.Fresh {
		// The boot ID would be that of all sandboxes that are restored from the same one.
		all = append(all, specs.Mount{Destination: "/proc/sys/kernel/random", Type: "tmpfs", Source: "tmpfs",
			Options: []string{"nosuid", "noexec", "nodev", "ro", "mode=0555", "size=4096"}})
	}
	binds := slices.Clone(spec.Mounts)
	if !slices.ContainsFunc(binds, func(m runner.Mount) bool { return m.Target == Client }) {
		binds = append(binds, runner.Mount{Source: spec.Image.RootFS + clientInImage, Target: Client})
	}
	// One order for one request, whatever order it came in.
	slices.SortFunc(binds, func(a, b runner.Mount) int { return strings.Compare(a.Target, b.Target) })
	for _, top := range tops(spec.Mounts) {
		all = append(all, tmpfs(top, topBytes, "0755"))
	}
	for _, m := range binds {
		mount := bind(m.Source, m.Target)
		if m.Writable || m.Seen != nil { // the server of the files refuses what is seen, unless it is writable
			mount.Options[1] = "rw"
		}
		all = append(all, mount)
	}
	return all
}

// topBytes is the size of a file system that only has the targets of mounts.
const topBytes = 64 << 10

// tops returns the directories at which a file system is needed that has the targets of mounts, in order.
func tops(mounts []runner.Mount) []string {
	var tops []string
	for _, top := range images.MountDirs() {
		if top == "/tmp" || top == Workspace {
			continue // there is one
		}
		if slices.ContainsFunc(mounts, func(m runner.Mount) bool { return strings.HasPrefix(m.Target, top+"/") }) {
			tops = append(tops, top)
		}
	}
	return tops
}

func tmpfs(target string, bytes int64, mode string, more ...string) specs.Mount {
	options := append([]string{"nosuid", "nodev", "mode=" + mode, fmt.Sprintf("size=%d", bytes)}, more...)
	return specs.Mount{Destination: target, Type: "tmpfs", Source: "tmpfs", Options: options}
}

func bind(source, target string) specs.Mount {
	return specs.Mount{Destination: target, Type: "bind", Source: source,
		Options: []string{"bind", "ro", "nosuid", "nodev"}}
}
