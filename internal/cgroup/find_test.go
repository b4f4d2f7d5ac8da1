package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocate(t *testing.T) {
	const (
		unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
			"32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"34 24 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		container = "40 39 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	)
	tests := []struct {
		name, mounts, own string
		want              location
		fails             bool
	}{
		{
			name: "version 2, in a service", mounts: unified, own: "0::/system.slice/airlock.service\n",
			want: location{v2: "/sys/fs/cgroup/system.slice/airlock.service"},
		},
		{
			name: "version 2, namespaced root", mounts: unified, own: "0::/\n",
			want: location{v2: "/sys/fs/cgroup"},
		},
		{
			name: "both versions, controllers on version 1", mounts: hybrid,
			own: "4:memory:/user/a\n3:cpu,cpuacct:/\n2:pids:/user\n0::/user\n",
			want: location{v1: map[Controller]string{
				Memory: "/sys/fs/cgroup/memory/user/a", CPU: "/sys/fs/cgroup/cpu,cpuacct",
				cpuacct: "/sys/fs/cgroup/cpu,cpuacct", PIDs: "/sys/fs/cgroup/pids/user",
			}},
		},
		{
			name: "a container that sees only its part", mounts: container, own: "4:memory:/docker/abc/inner\n",
			want: location{v1: map[Controller]string{Memory: "/sys/fs/cgroup/memory/inner"}},
		},
		{
			name: "a mount whose part is elsewhere", mounts: container, own: "4:memory:/docker/abcdef\n", fails: true,
		},
		{
			name: "a space in the mount point", own: "0::/x\n",
			mounts: `30 24 0:26 / /mnt/my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			want:   location{v2: "/mnt/my groups/x"},
		},
		{name: "nothing mounted", mounts: "1 0 0:1 / / rw - ext4 /dev/vda rw\n", own: "0::/\n", fails: true},
		{name: "rubbish", mounts: "- - -\n\n x", own: "::\n1", fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := locate(test.mounts, test.own)
			if (err != nil) != test.fails {
				t.Fatalf("error: got %v, want one: %v", err, test.fails)
			}
			if test.fails {
				return
			}
			if test.want.v1 == nil && test.want.v2 == "" {
				t.Fatal("the case wants nothing")
			}
			if got.v2 != test.want.v2 {
				t.Errorf("version 2: got %q, want %q", got.v2, test.want.v2)
			}
			if got.v2 == "" {
				if diff := cmp.Diff(test.want.v1, got.v1); diff != "" {
					t.Errorf("version 1 (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		found, err := locate(mounts, own)
		if err == nil && found.v2 == "" && len(found.v1) == 0 {
			t.Error("got neither a place nor an error")
		}
	})
}

func TestSettings(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		v1, v2 map[string]string
	}{
		{"nothing asked, nothing set", Limits{}, map[string]string{}, map[string]string{}},
		{
			"all limits", Limits{Memory: 64 << 20, CPUs: 1.5, Tasks: 100},
			map[string]string{
				"memory.limit_in_bytes": "67108864", "memory.memsw.limit_in_bytes": "67108864",
				"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000", "pids.max": "100",
			},
			map[string]string{
				"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1",
				"cpu.max": "150000 100000", "pids.max": "100",
			},
		},
		{
			"a quota below the kernel's smallest", Limits{CPUs: 0.001},
			map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "1000"},
			map[string]string{"cpu.max": "1000 100000"},
		},
	}
	files := func(settings []setting) map[string]string {
		m := map[string]string{}
		for _, s := range settings {
			m[s.file] = s.value
		}
		return m
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.v1, files(v1Settings(test.limits))); diff != "" {
				t.Errorf("version 1 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.v2, files(v2Settings(test.limits))); diff != "" {
				t.Errorf("version 2 (-want +got):\n%s", diff)
			}
		})
	}
}
