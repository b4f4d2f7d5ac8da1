package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// garbagePercent returns by how much the heap may grow before the next collection.
func garbagePercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestOnlyTheFirstCollectionIsDelayed(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(collections))
	t.Setenv("GOGC", "")
	delayFirstCollection()
	if got := garbagePercent(); got != firstCollection {
		t.Errorf("before the first collection: %d percent, want %d", got, firstCollection)
	}
	for garbagePercent() != collections { // cleanups run concurrently, after the collection
		runtime.GC()
	}
}

func TestCollectionsAreAsTheEnvironmentSays(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	t.Setenv("GOGC", "50")
	delayFirstCollection()
	if got := garbagePercent(); got != 50 {
		t.Errorf("with GOGC=50: %d percent", got)
	}
}
