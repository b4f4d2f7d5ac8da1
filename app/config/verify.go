package config

import "time"

// Verify bounds verifications of claims and programs. They run in separate sandboxes, which
// do not count as those of runs.
type Verify struct {
	Timeout      time.Duration // wall time of one request; also the most a caller may ask for
	Memory       int64         // bytes, everything one engine uses together
	MaxSandboxes int           // concurrent requests
	Queue        int           // requests that may wait for a sandbox; further requests are refused
	Pool         int           // sandboxes kept ready after the first request; 0 keeps none
}

func defaultVerify() Verify {
	return Verify{Timeout: 30 * time.Second, Memory: 768 << 20, MaxSandboxes: 4, Queue: 64, Pool: 1}
}

func (d *decoder) verifyFields(v *Verify) []field {
	return []field{
		{key: "timeout", val: duration{&v.Timeout, 100 * time.Millisecond, 10 * time.Minute}},
		{key: "memory", val: size{&v.Memory, 512 << 20, 1 << 40}},
		{key: "maxSandboxes", val: count[int]{&v.MaxSandboxes, 1, 1024}},
		{key: "queue", val: count[int]{&v.Queue, 0, 65536}},
		{key: "pool", val: count[int]{&v.Pool, 0, 64}},
	}
}
