package bounds

import "testing"

func TestForkBombFilled(t *testing.T) {
	const limit = 512 << 20
	type step struct {
		tasks  int
		memory int64
	}
	start := func(from, to int, memory, each int64) (steps []step) {
		for tasks := from; tasks <= to; tasks++ {
			memory += each
			steps = append(steps, step{tasks, memory << 20})
		}
		return steps
	}
	end := func(from int, memory int64) (steps []step) {
		for tasks := from - 1; tasks >= 0; tasks-- {
			steps = append(steps, step{tasks, memory << 20})
		}
		return steps
	}
	tests := []struct {
		name  string
		steps []step
		want  bool
	}{
		{"a fork bomb", start(1, 90, 40, 5), true},
		{"one that ends some in between", append(start(1, 60, 40, 5), start(50, 90, 340, 4)...), true},
		{"a pool of threads that then read much", start(1, 64, 40, 1), false},
		{"much data, then a pool of threads", start(1, 32, 400, 1), false},
		{"a few large processes", start(1, 8, 0, 60), false},
		{"more large processes", start(1, 26, 0, 25), false},
		{"the host has killed all", append(start(1, 94, 40, 5), end(94, 512)...), true},
		{"all have ended", append(start(1, 90, 40, 5), end(90, 450)...), false},
		{"nothing was started", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b forkBomb
			for _, s := range test.steps {
				b.counted(s.tasks, func() (int64, bool) { return s.memory, s.memory >= limit })
			}
			if got := b.filled(limit); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
