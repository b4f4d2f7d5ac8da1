package cgroup

import (
	"strconv"
	"time"
)

// period is the window in which a CPU quota is counted: the kernel's default.
const period = 100 * time.Millisecond

// minQuota is the smallest CPU quota per period that the kernel takes.
const minQuota = time.Millisecond

func quota(cpus float64) string {
	q := max(time.Duration(cpus*float64(period)), minQuota)
	return strconv.FormatInt(q.Microseconds(), 10)
}

func v1Settings(limits Limits) []setting {
	var all []setting
	if limits.Memory > 0 {
		bytes := strconv.FormatInt(limits.Memory, 10)
		// The order matters: the kernel refuses memory+swap below memory.
		all = append(all,
			setting{controller: Memory, file: "memory.limit_in_bytes", value: bytes},
			setting{controller: Memory, file: "memory.memsw.limit_in_bytes", value: bytes, optional: true})
	}
	if limits.CPUs > 0 {
		all = append(all,
			setting{controller: CPU, file: "cpu.cfs_period_us", value: strconv.FormatInt(period.Microseconds(), 10)},
			setting{controller: CPU, file: "cpu.cfs_quota_us", value: quota(limits.CPUs)})
	}
	if limits.Tasks > 0 {
		all = append(all, setting{controller: PIDs, file: "pids.max", value: strconv.FormatInt(limits.Tasks, 10)})
	}
	return all
}

func v2Settings(limits Limits) []setting {
	var all []setting
	if limits.Memory > 0 {
		all = append(all,
			setting{controller: Memory, file: "memory.max", value: strconv.FormatInt(limits.Memory, 10)},
			setting{controller: Memory, file: "memory.swap.max", value: "0", optional: true},
			// Half a sandbox is of no use to anyone: when one process goes, all go.
			setting{controller: Memory, file: "memory.oom.group", value: "1", optional: true})
	}
	if limits.CPUs > 0 {
		value := quota(limits.CPUs) + " " + strconv.FormatInt(period.Microseconds(), 10)
		all = append(all, setting{controller: CPU, file: "cpu.max", value: value})
	}
	if limits.Tasks > 0 {
		all = append(all, setting{controller: PIDs, file: "pids.max", value: strconv.FormatInt(limits.Tasks, 10)})
	}
	return all
}
