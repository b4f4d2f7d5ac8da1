package posture

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sound is a process as it must be, and what is wanted of it.
func sound() (observed, Want) {
	ours := map[string]string{}
	theirs := map[string]string{}
	for _, kind := range separated {
		ours[kind], theirs[kind] = kind+":[1]", kind+":[2]"
	}
	seen := observed{
		pid: 7, uids: []string{"65534", "65534", "65534", "65534"}, gids: []string{"65534", "65534", "65534", "65534"},
		caps:       map[string]uint64{"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0},
		noNewPrivs: "1", seccomp: "2", namespaces: theirs,
		mounts: []mountSeen{{point: "/", options: "ro,nosuid", kind: "tmpfs"}},
		files: []fileSeen{{target: "pipe:[3]"}, {target: "/memfd:runsc-memory"},
			{target: "/s/log", flags: unix.O_WRONLY}, {target: "/usr/bin/x", flags: unix.O_RDONLY}},
		cgroups:    "4:memory:/x/airlock-sb-1\n0::/\n",
		interfaces: []string{"lo"},
	}
	want := Want{Role: "kernel", Host: User{65534, 65534}, Ours: ours, Group: "airlock-sb-1", Mounts: []string{"/"},
		Writable: []string{"/s/log"}}
	return seen, want
}

func TestPostureOfASoundProcess(t *testing.T) {
	seen, want := sound()
	if err := want.check(seen); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestPostureDiffers(t *testing.T) {
	tests := []struct {
		name   string
		change func(*observed)
		want   string
	}{
		{"root", func(o *observed) { o.uids[1] = "0" }, "runs as user"},
		{"root's group", func(o *observed) { o.gids[3] = "0" }, "runs as group"},
		{"more groups", func(o *observed) { o.groups = "0 27" }, "groups"},
		{"a capability", func(o *observed) { o.caps["CapEff"] = 1 << 21 }, "capabilities 0x200000 too many in CapEff"},
		{"a capability to be had", func(o *observed) { o.caps["CapBnd"] = 1 }, "CapBnd"},
		{"unknown capabilities", func(o *observed) { delete(o.caps, "CapAmb") }, "unknown capabilities"},
		{"new privileges", func(o *observed) { o.noNewPrivs = "0" }, "may gain privileges"},
		{"no filter", func(o *observed) { o.seccomp = "0" }, "no filter of system calls"},
		{"strict mode", func(o *observed) { o.seccomp = "1" }, "no filter of system calls"},
		{"the host's network", func(o *observed) { o.namespaces["net"] = "net:[1]" },
			"shares the host's net namespace"},
		{"an unknown namespace", func(o *observed) { delete(o.namespaces, "user") }, "user namespace"},
		{"a network interface", func(o *observed) { o.interfaces = []string{"lo", "eth0"} }, "[lo eth0]"},
		{"another control group", func(o *observed) { o.cgroups = "4:memory:/\n" }, "is not in control group"},
		{"a control group beside", func(o *observed) { o.cgroups = "4:memory:/airlock-sb-1x\n" },
			"is not in control group"},
		{"a mount more", func(o *observed) { o.mounts = append(o.mounts, mountSeen{"/etc", "ro", "ext4"}) },
			"file systems at [/ /etc]"},
		{"no mount", func(o *observed) { o.mounts = nil }, "file systems at []"},
		{"a mount to write to", func(o *observed) { o.mounts[0].options = "rw" },
			`can write to the file system at "/"`},
		{"a file to write to", func(o *observed) { o.files = append(o.files, fileSeen{"/etc/shadow", unix.O_RDWR}) },
			`"/etc/shadow" open for writing`},
		{"a device", func(o *observed) { o.files = append(o.files, fileSeen{"/dev/kvm", unix.O_RDWR}) }, `"/dev/kvm"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen, want := sound()
			test.change(&seen)
			err := want.check(seen)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "its kernel (process 7)") {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestPostureOfThisProcess(t *testing.T) {
	seen, err := observe(unix.Getpid(), true)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := NamespacesOf(unix.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if len(seen.caps) != 5 || len(seen.uids) != 4 || len(seen.mounts) == 0 || len(seen.files) == 0 ||
		len(seen.interfaces) == 0 {
		t.Errorf("got %+v, want every part to be read", seen)
	}
	if err := (Want{Role: "test", Ours: ours}).checkNamespaces(seen); err == nil {
		t.Error("our own namespaces: got nil, want an error")
	}
}

func BenchmarkObserve(b *testing.B) {
	for b.Loop() {
		if _, err := observe(unix.Getpid(), true); err != nil {
			b.Fatal(err)
		}
	}
}
