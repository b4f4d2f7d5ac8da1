package bounds

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMeterCountsHeapAndMemoryFiles(t *testing.T) {
	before, err := memoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "test")
	defer file.Close()
	chunk := make([]byte, 1<<20)
	for range size / len(chunk) {
		if _, err := file.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	twice, err := unix.Dup(fd) // the same memory, which counts once
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(twice)
	after, err := memoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < size || grown > 2*size-1 {
		t.Errorf("after writing %d bytes: got %d more", size, grown)
	}
	if heap := anonymous("Name:\tx\nRssAnon:\t     120 kB\nRssFile:\t 9 kB\n"); heap != 120<<10 {
		t.Errorf("heap: got %d, want %d", heap, 120<<10)
	}
}

func TestMeterEnds(t *testing.T) {
	hit := &Meter{pid: os.Getpid(), limit: 1}
	if !hit.Await(t.Context()) {
		t.Error("over the limit: got no hit")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (&Meter{pid: os.Getpid(), limit: 1 << 50}).Await(ctx) {
		t.Error("after the end of the watch: got a hit")
	}
	if (&Meter{pid: 1 << 30, limit: 1}).Await(t.Context()) {
		t.Error("without a process: got a hit")
	}
}

func TestMeterLooksOftenerNearTheLimit(t *testing.T) {
	tests := []struct {
		room int64
		want time.Duration
	}{{0, shortestPause}, {fastestGrowth / 16, 62500 * time.Microsecond}, {1 << 40, longestPause}}
	for _, test := range tests {
		if got := pause(test.room); got != test.want {
			t.Errorf("with %d bytes left: got %v, want %v", test.room, got, test.want)
		}
	}
}
