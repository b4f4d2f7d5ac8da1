package testenv

import "runtime"

// Heap returns how many bytes this process uses that it cannot free.
func Heap() int64 {
	var stats runtime.MemStats
	for range 3 { // pools keep buffers over a collection
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
